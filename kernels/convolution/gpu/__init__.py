"""Convolution on a GPU: which kernel takes a call, products over blocks of channels, products that gather single cells, depthwise sums."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)  # a process without a GPU reads none of them
