"""Benchmarks of the CPU and of the host cost of an op: `python -m bench host`, `train`, `ops`, `optim`, `imports`."""
