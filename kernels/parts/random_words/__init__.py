"""Random words by Philox, and normal numbers made of them: the same bits in Triton and in numpy."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
