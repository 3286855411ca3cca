"""Cross-entropy: the op with its kernels, its arguments and its CPU side."""
