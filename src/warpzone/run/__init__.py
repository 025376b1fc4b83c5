"""A run: one folder with configuration, metrics and weights."""
