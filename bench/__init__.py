"""Benchmarks: `python -m bench host | train | ops | static | gpu | table`. torch is a peer in the same run where it is installed."""
