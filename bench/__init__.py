"""Benchmarks: `python -m bench host | train | ops | optim | imports | checkpoint | static | gpu | compare | table`, and `python -m pytest bench --benchmark-only`."""
