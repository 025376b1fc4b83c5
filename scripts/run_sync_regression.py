"""Makes, plays and closes all lanes in one process, trial after trial."""

import sys

from warpzone.stability.regression import sync_main

if __name__ == "__main__":
    sys.exit(sync_main(sys.argv[1:]))
