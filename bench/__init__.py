"""Benchmarks: `python -m bench NAME` (`python -m bench --help` lists the names), and `python -m pytest bench --benchmark-only`."""
