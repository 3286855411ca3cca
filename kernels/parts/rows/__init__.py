"""Arrays as rows, tiles of rows, and the softmax of a row, which several families walk in."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
