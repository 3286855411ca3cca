"""Parts of ops' CPU sides: elementwise numpy in blocks, special functions, sums and scans, conversions of floats."""

from tritensor.kernels.parts import lazy_modules

__getattr__ = lazy_modules(__name__)
