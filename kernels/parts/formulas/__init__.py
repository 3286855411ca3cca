"""Jitted formulas that more than one family of ops uses."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
