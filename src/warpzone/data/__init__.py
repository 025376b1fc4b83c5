"""What is in flight between acting and learning: rollouts, frame stacking, replay."""
