"""What a run measures: one schema, one writer, many sinks."""
