"""Fourier transforms and short-time spectra."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.spectral import fourier, short_time  # noqa: F401
