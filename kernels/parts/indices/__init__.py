"""Rows by integer keys: reading and adding them, sorting keys, reports of bad indices."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
