"""Training: the main loop, its sessions, checkpoints and plans."""
