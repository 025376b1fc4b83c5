"""Searching for settings: sweeps on Optuna, populations on Ray Tune. Both train with
`train/session.py`; their trials and members are runs like any other."""
