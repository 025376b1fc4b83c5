"""Measuring speed. Needs NumPy and the engine; other packages are optional."""
