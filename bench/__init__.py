"""Benchmarks: `python -m bench host | train | ops`. torch is a peer in the same run where it is installed."""
