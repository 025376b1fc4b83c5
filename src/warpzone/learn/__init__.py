"""Learning: rollouts in, a better agent out."""
