"""Tapes: fused groups of formulas as data, and the kernels and machine code that run any of them."""
