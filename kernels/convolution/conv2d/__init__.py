"""Two-dimensional convolution: the op, its kernels, its side on the CPU."""
