"""One trial with worker processes, as a program."""

import sys

from warpzone.stability.regression import trial_main

if __name__ == "__main__":
    sys.exit(trial_main(sys.argv[1:]))
