"""The line of a kernel that is running, with its text: for messages about that line."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import triton

TRITON = str(Path(triton.__file__).parent)
_BELOW = (TRITON, str(Path(__file__).parent))  # Triton's own functions and ours are on the way to the line
_LAUNCH = str(Path(__file__).with_name("runtime.py"))  # the kernel was called from there
_COLUMNS = 90  # of a source line that are shown

# (file, line) that runs now; the same of the kernel that called it, where that is another function
Lines = tuple[str, int, str, int]


def running() -> Lines:
    """The innermost line that runs now and is neither Triton's nor the emulator's, and the line of the kernel itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BELOW):
        frame = frame.f_back
    inner = outer = frame
    # on to the launch: a helper's line alone does not tell which of the kernel's calls was wrong
    above = frame.f_back
    while above is not None and above.f_code.co_filename != _LAUNCH:
        if not above.f_code.co_filename.startswith(_BELOW):
            outer = above
        above = above.f_back
    if above is None:  # not inside a launch
        outer = inner
    return inner.f_code.co_filename, inner.f_lineno, outer.f_code.co_filename, outer.f_lineno


def raised(error: BaseException) -> str:
    """ " (softmax.py:31: y = x.load())": the kernel's innermost line that an error came through on its way out; "" where it came through none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_BELOW):
            found = f" ({quoted(file, trace.tb_lineno)})"
        trace = trace.tb_next
    return found


def shown(lines: Lines) -> str:
    """ "softmax.py:31: tl.store(y + i, v)"; where a kernel's helper runs, ", called from softmax.py:52: ..." as well."""
    inner, outer = lines[:2], lines[2:]
    return quoted(*inner) if inner == outer else f"{quoted(*inner)}, called from {quoted(*outer)}"


def quoted(file: str, number: int) -> str:
    """ "softmax.py:31: tl.store(y + i, v)": a line of a file by its number."""
    text = linecache.getline(file, number).strip()
    text = text if len(text) <= _COLUMNS else text[: _COLUMNS - 3] + "..."
    return f"{Path(file).name}:{number}" + f": {text}" * bool(text)


def kernel_line() -> str:
    """The line that runs now, shown."""
    return shown(running())
