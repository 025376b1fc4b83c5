"""What a run measures: one schema of all fields, and the sinks that rows go to."""
