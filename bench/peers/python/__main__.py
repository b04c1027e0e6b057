"""A worker of `ramway bench`: measures ways between two Python processes. `python bench/peers/python MODULE`, where
`peer_MODULE.py` has the mechanisms, with the order in RAMWAY_BENCH_WORKER."""

import sys

from worker import main

if __name__ == "__main__":
    sys.exit(main())
