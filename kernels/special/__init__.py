"""Special functions, beyond those of kernels/elementwise."""
