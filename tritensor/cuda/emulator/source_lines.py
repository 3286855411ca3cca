"""Which line of a kernel is running: for messages about what it did there."""

from __future__ import annotations

import sys
from pathlib import Path

import triton

_BELOW = (str(Path(triton.__file__).parent), str(Path(__file__).parent))  # Triton's own functions and ours are on the way to the line


def kernel_line() -> str:
    """ "softmax.py:31": the innermost line that runs now and is neither Triton's nor the emulator's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BELOW):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
