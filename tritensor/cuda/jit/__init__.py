"""Kernels under `@triton.jit` that are read late: their source at the first look, and Triton itself when the first of them is needed."""
