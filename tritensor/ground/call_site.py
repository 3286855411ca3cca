"""The line of the user's program that called, the innermost frame outside of tritensor; what it called; how a message writes them;
and the name of this library as that program knows it."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from tritensor.ground.naming.type_names import use_their_names
from tritensor.ground.thread_state import here

# Code under here is not the user's. As it was imported: a frame's file has its symbolic links unresolved, too.
INSIDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_Function = TypeVar("_Function", bound=Callable[..., Any])
_wrappers: set[CodeType] = set()


def wrapper(f: _Function) -> _Function:
    """Mark a function that stands around a public one, such as the door or a grad mode: its own name says nothing to a user."""
    _wrappers.add(f.__code__)
    return f


def is_wrapper(code: CodeType) -> bool:
    """Whether code was marked so."""
    return code in _wrappers


def mark_wrapper(code: CodeType) -> CodeType:
    """The same for code that a function object is given later."""
    _wrappers.add(code)
    return code


def was_raised_inside(trace: TracebackType) -> bool:
    """Whether an error comes from inside of what the first frame called, and not from the call; what stands around that is not it."""
    while trace.tb_next is not None:
        trace = trace.tb_next
        if trace.tb_frame.f_code not in _wrappers:
            return True
    return False


def called_name() -> str:
    """The name of what the user's line called: of the outermost frame inside of tritensor that is no wrapper."""
    if here.calling:
        return here.calling
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    # outwards, so that the last name kept is that of the public function and not of one that it calls
    while frame.f_code.co_filename.startswith(INSIDE) and frame.f_back is not None:
        if frame.f_code not in _wrappers:
            name = frame.f_code.co_name
        frame = frame.f_back
    return name


def user_frame(frame: FrameType) -> FrameType:
    """The innermost frame outside of tritensor, from `frame` outwards; the outermost, where all are inside."""
    while frame.f_code.co_filename.startswith(INSIDE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def user_instruction() -> tuple[CodeType, int]:
    """(code, instruction): the user's line, unread as yet, which is cheap to keep; `line_of` reads it."""
    frame = user_frame(sys._getframe(1))
    # not the line, which is found in a table of the code: most allocations are never reported
    return frame.f_code, frame.f_lasti


def user_line() -> str:
    """ "train.py:42": the user's line that called."""
    # our own frames are passed over: a message names the line that the user can change
    frame = user_frame(sys._getframe(1))
    return file_and_line(frame.f_code.co_filename, frame.f_lineno)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the user's line, however many of our own frames stand between."""
    if here.noting is not None:
        here.noting.spoil("it warns")
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(INSIDE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def line_of(code: CodeType, instruction: int) -> tuple[str, int]:
    """(file, line) of an instruction of a code object."""
    line = next((n for start, end, n in code.co_lines() if start <= instruction < end and n is not None), code.co_firstlineno)
    return code.co_filename, line


def file_and_line(file: str, line: int) -> str:
    """`file:line`, the file from the working directory on where it lies below it."""
    try:
        # paths as the user types them: shorter, and the same on every machine
        below = os.getcwd() + os.sep
    except FileNotFoundError:  # the working directory was removed; a message must not fail for that
        return f"{file}:{line}"
    return f"{file.removeprefix(below)}:{line}"


_library = "tritensor"


def qualified_name(name: str) -> str:
    """`tritensor.<name>`, as types, sizes, layouts and storages print themselves."""
    return f"{_library}.{name}"


@contextlib.contextmanager
def use_library_name(library: str) -> Iterator[None]:
    """Within the `with` they print another library's name: torch's where a script's `import torch` is answered."""
    global _library
    before, _library = _library, library
    types_before = use_their_names(library == "torch")
    try:
        yield
    finally:
        _library = before
        use_their_names(types_before)
