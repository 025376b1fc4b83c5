"""What learning computes: returns, losses, schedules, the optimiser."""
