"""Connectionist temporal classification: the op with its kernels, and its side on the CPU."""
