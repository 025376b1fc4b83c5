"""Evaluation: every start delay, one life, no scripts."""
