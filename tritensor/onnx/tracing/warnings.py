"""What a trace cannot see: Python's own decisions on the values of a tensor."""

from __future__ import annotations

import sys
import warnings

from tritensor.call_site import called_name, user_frame
from tritensor.errors import TracerWarning

_KINDS = {
    "__bool__": "a Python bool", "__int__": "a Python int", "__float__": "a Python float", "__index__": "a Python int", "item": "a Python number",
    "tolist": "a Python list", "numpy": "a numpy array", "__array__": "a numpy array", "__contains__": "a Python bool",
}  # fmt: skip


def tell_read() -> None:
    """Warn, at the user's line, that values of a traced tensor are read."""
    frame = user_frame(sys._getframe(1))
    name = called_name()
    what = f"makes {_KINDS[name]} of" if name in _KINDS else f"({name}) reads the values of"
    warnings.warn_explicit(
        f"onnx.export: this line {what} a tensor that depends on the inputs. The trace holds the numbers of the sample as constants, and a branch "
        "taken on them is the only one in the graph: other inputs may be treated wrongly. Write it with tensor operations (where instead of if)",
        TracerWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )


def tell(said: str) -> None:
    """Warn of something in the trace that holds for no single line."""
    warnings.warn(said, TracerWarning, stacklevel=4)
