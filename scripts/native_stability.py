"""The native engine made, played and closed until something breaks or the plan is through."""

import sys

from warpzone.stability.native_trial import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
