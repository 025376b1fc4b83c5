"""Random changes of the source, for `scripts/mutants.py --random`."""
