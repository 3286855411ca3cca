"""Arrays as rows, tiles of rows, and the softmax of a row, which several families walk in."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
