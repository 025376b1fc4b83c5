"""What `scripts/kill_test.py` compares."""
