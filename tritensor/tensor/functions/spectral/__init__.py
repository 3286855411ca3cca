"""Fourier transforms and short-time spectra."""

from tritensor.tensor.functions.spectral import fourier as fourier
from tritensor.tensor.functions.spectral import short_time as short_time
