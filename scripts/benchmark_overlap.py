"""What collecting while learning is worth; the same as `warpzone bench overlap`."""

import sys

from warpzone.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["bench", "overlap", *sys.argv[1:]]))
