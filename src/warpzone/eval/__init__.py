"""Evaluation that is hard to fool: every start delay, one life, no help."""
