"""Random words by Philox, and normal numbers made of them: the same bits in Triton and in numpy."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
