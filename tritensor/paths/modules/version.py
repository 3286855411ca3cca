"""torch.version: what this library is, and what it was built for."""

from __future__ import annotations

from typing import Any

cuda = hip = rocm = xpu = None  # nothing is built: kernels are compiled for the GPU that is there
debug = False


def __getattr__(name: str) -> Any:
    """`__version__` stands at the front door."""
    if name == "__version__":
        import sys

        return sys.modules["tritensor"].__version__
    from tritensor.paths.finder import look_up

    return look_up("version", name)
