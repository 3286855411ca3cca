"""Special functions as formulas of kernels, which numpy and Tensors read as well (see backends.py): approximations with their sources."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
