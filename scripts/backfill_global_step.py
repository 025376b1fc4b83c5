"""Computes `global_step` for side-cars of checkpoints in which it is 0. See `--help`."""

import sys

from warpzone.cli.checkpoints import backfill_main

if __name__ == "__main__":
    sys.exit(backfill_main())
