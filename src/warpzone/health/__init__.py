"""The health of a run: progress, speed, machine, and hints."""
