"""Tapes: fused groups of formulas as data, and the kernels and machine code that run any of them."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
