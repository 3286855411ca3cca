"""Loss functions with kernels of their own."""
