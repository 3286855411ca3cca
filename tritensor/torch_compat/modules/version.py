"""torch.version: what this library is, and what it was built for."""

from __future__ import annotations

import sys

cuda = hip = rocm = xpu = None  # nothing is built: kernels are compiled for the GPU that is there
debug = False  # in PyTorch whether it was built for debugging

__version__: str = sys.modules["tritensor"].__version__
