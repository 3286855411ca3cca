"""Triton kernels of other projects, fetched and unchanged, run on our tensors: `python -m tests.other_kernels`."""
