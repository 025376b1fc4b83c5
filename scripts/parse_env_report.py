"""What the rows of env_stability_report.jsonl say together."""

import sys

from warpzone.stability.regression import parse_main

if __name__ == "__main__":
    sys.exit(parse_main(sys.argv[1:]))
