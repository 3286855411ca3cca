"""Workloads: programs of many small ops as people write them, a file each. `build()` answers a step, which answers a loss."""
