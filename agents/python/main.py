"""Python's agent: main.py COMMAND --flag value ...

../README.md says what each command and flag means.
"""

import os
import sys

import other
import ramway
import stream
from common import BadMessage, parse, say


def main() -> int:
    args = parse(sys.argv[1:])
    if args.cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.cpu})
    try:
        if args.command == "tensors":
            # Here alone, for what it imports.
            from tensor import tensors

            tensors(args)
        else:
            getattr(stream if hasattr(stream, args.command) else other, args.command)(args)
    except ramway.Error as error:
        say(f"error name={error.kind} number={error.code} text={error}")
        return 1
    except BadMessage as bad:
        say(f"bad seq={bad.seq} text={bad}")
        return 1
    return 0


sys.exit(main())
