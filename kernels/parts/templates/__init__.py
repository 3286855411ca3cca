"""Kernels' functions made of templates."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
