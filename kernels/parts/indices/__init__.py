"""Rows by integer keys: reading and adding them, sorting keys, reports of bad indices."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
