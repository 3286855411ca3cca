"""Losses with kernels of their own."""
