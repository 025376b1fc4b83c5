"""Measuring speed. Needs NumPy and the engine; everything else is used when it is there."""
