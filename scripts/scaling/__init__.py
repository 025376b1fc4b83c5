"""Parts of make_scaling.py."""
