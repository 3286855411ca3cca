"""Warnings about tensors whose values Python reads, and so a trace cannot follow."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

from tritensor.ground.call_site import INSIDE, file_and_line, is_wrapper, user_frame
from tritensor.ground.errors import TracerWarning
from tritensor.ground.transforms.transform import HOST_FUNCTIONS
from tritensor.onnx.errors import UnsupportedOperatorError

_PYTHON_TYPES = {
    "__bool__": "a Python bool", "__int__": "a Python int", "__float__": "a Python float", "__index__": "a Python int", "item": "a Python number",
    "tolist": "a Python list", "numpy": "a numpy array", "__array__": "a numpy array", "__contains__": "a Python bool",
}  # fmt: skip


_MODULE_FILES = (INSIDE + "nn" + os.sep + "module.py", INSIDE + "nn" + os.sep + "container.py")


# Of these the numbers that are read say how, and not what
_READERS_OF_OPTIONS = frozenset(["embedding_bag", "linspace", "logspace", "repeat_interleave"])


def _find_called_name(frame: FrameType | None) -> str:
    """What the user's line called, or, where library code alone runs, what the exporter did: the last function before these."""
    name = ""
    while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
        # below this frame stands the exporter's own call, which the user did not write
        if os.sep + "onnx" + os.sep in frame.f_code.co_filename and name:
            break
        if frame.f_code.co_filename not in _MODULE_FILES and not is_wrapper(frame.f_code):
            name = frame.f_code.co_name
        frame = frame.f_back
    return name


def warn_of_read() -> None:
    """Warn, at the user's line, that values of a traced tensor are read."""
    frame = user_frame(sys._getframe(1))
    name = _find_called_name(sys._getframe(1))
    # the whole result would be a constant of the sample: a warning would leave a graph that is wrong for all other inputs
    if name in HOST_FUNCTIONS - _READERS_OF_OPTIONS:
        raise UnsupportedOperatorError(
            f"onnx.export: {name} ({file_and_line(frame.f_code.co_filename, frame.f_lineno)}) computes on the host from the values of its input, which a graph "
            "would hold as constants; ONNX has no operator for it: compute it outside of the exported part"
        )
    what = f"makes {_PYTHON_TYPES[name]} of" if name in _PYTHON_TYPES else f"({name}) reads the values of"
    warnings.warn_explicit(
        f"onnx.export: this line {what} a tensor that depends on the inputs. The trace holds the numbers of the sample as constants, and a branch "
        "taken on them is the only one in the graph: other inputs may be treated wrongly. Write it with tensor operations (where instead of if)",
        TracerWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )


def warn_of_trace(said: str) -> None:
    """Warn of something in the trace that holds for no single line."""
    warnings.warn(said, TracerWarning, stacklevel=4)
