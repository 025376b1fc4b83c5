"""The same with worker processes and a time-out for each trial."""

import sys

from warpzone.stability.regression import async_main

if __name__ == "__main__":
    sys.exit(async_main(sys.argv[1:]))
