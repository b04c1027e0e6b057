"""Python's program of the conformance kit: main.py LIBRAMWAY COMMAND --flag value ...

../../README.md says what each command and flag means.
"""

import os
import sys

import binding
import other
import stream
from common import Bad, parse, say


def main():
    binding.load(sys.argv[1])
    args = parse(sys.argv[2:])
    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})
    try:
        getattr(stream if hasattr(stream, args.command) else other, args.command)(args)
    except binding.Error as error:
        say(f"error name={binding.name(error.number)} number={error.number} text={error}")
        return 1
    except Bad as bad:
        say(f"bad seq={bad.seq} text={bad}")
        return 1
    return 0


sys.exit(main())
