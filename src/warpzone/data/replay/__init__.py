"""Prioritised replay of rollout segments."""
