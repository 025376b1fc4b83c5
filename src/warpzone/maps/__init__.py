"""Full-length pictures of stages, stitched from real frames, and what happened on them."""
