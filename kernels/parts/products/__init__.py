"""Matrix products by tensor descriptors: the kernel, its launch rule, its launch."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
