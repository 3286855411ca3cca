"""Convolutions over one to three axes: the ops, their kernels, their side on the CPU."""
