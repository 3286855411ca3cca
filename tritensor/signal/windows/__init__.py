"""Window functions under PyTorch's names of signal.windows, symmetric unless sym=False."""

from tritensor.tensor.functions.creation.windows import windows as _windows

globals().update(_windows)

__all__ = sorted(_windows)
