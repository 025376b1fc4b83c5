"""Observers of a run: log, health, metrics, videos, wall, control, dashboard."""
