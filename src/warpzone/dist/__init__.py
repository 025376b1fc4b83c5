"""Runs of several processes: who starts them, how they exchange, and what ends them."""
