"""The health of a run: is it alive, how fast, on what, and what would help."""
