"""Kernels and ops with one error each, as authors write them."""
