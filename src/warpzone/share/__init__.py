"""Agents for others: files that need nothing of this package, and a model hub."""
