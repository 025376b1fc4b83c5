"""One trial with worker processes: async_trial_worker.py NUM_ENVS SEED."""

import sys

from warpzone.stability.regression import trial_main

if __name__ == "__main__":
    sys.exit(trial_main(sys.argv[1:]))
