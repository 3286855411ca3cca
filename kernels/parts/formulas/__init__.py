"""Jitted formulas that more than one family of ops uses."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
