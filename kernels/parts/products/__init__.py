"""Matrix products by tensor descriptors: the kernel, its launch rule, its launch."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
