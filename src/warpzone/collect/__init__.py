"""Collecting: lanes play, the actor decides, the collector fills rollouts."""
