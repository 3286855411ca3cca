"""tritensor.fft: Fourier transforms, torch.fft in full. Spectra are complex and live on the CPU."""

from tritensor.tensor.public_api.publish import namespaces as _namespaces

globals().update(_namespaces["fft"])

__all__ = sorted(_namespaces["fft"])
