"""Parts of ops' CPU sides: elementwise numpy in blocks, special functions, sums and scans, conversions of floats."""

from tritensor.kernels.parts import door

__getattr__ = door(__name__)
