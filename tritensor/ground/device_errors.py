"""Errors that only the GPU sees: a kernel that meets a bad index leaves a record, and the next wait for the device raises it.

A GPU has one error record, four integers of host memory that its kernels may write: site, value, position, bound. A site is a number that
stands for what the host knows: which op, what the integers mean, and the line of the user's program that called it. The first
error wins; raising it clears the record, and the process goes on.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Hashable
from types import CodeType
from typing import Any

from tritensor.ground.call_site import file_and_line, line_of, user_frame
from tritensor.ground.errors import OutOfRangeError
from tritensor.ground.process import locks

FIELDS = 4  # int64 each
NBYTES = 8 * FIELDS

_MEMORY = 4096  # places in the user's program that are remembered by instruction

# Wording takes what a site holds and (value, position, bound) of a record, and writes the error's message.
Wording = Callable[..., str]


class _Entered(threading.local):
    """The site of the op that was called last on this thread; 0 before the first."""

    site = 0


_entered = _Entered()
_lock = locks.lock()
_numbers: dict[Hashable, int] = {}
_sites: dict[int, tuple[Any, ...]] = {}  # (file, line, op, wording, facts)
_seen: dict[tuple[int, int, str], tuple[int, CodeType]] = {}  # holds the code, so that its id stays its own


def _site_number(file: str, line: int, op: str, wording: Wording | None = None, facts: tuple[Hashable, ...] = ()) -> int:
    """The number of a site, a new one for a new site."""
    key = (file, line, op, wording, facts)
    found = _numbers.get(key)
    if found is None:
        with _lock:
            found = _numbers.get(key, len(_numbers) + 1)
            _sites[found] = key
            _numbers[key] = found
    return found


def _site_of_caller(frame: Any, op: str) -> int:
    """The site of an op and of the line in the innermost frame outside of tritensor."""
    frame = user_frame(frame)
    return _site_of(frame.f_code, frame.f_lasti, op)


def _site_of(code: CodeType, instruction: int, op: str) -> int:
    key = (id(code), instruction, op)
    found = _seen.get(key)
    if found is None:
        if len(_seen) >= _MEMORY:
            # all at once: programs have few lines, one that makes code as it runs has no end of them
            _seen.clear()
        found = _seen[key] = _site_number(*line_of(code, instruction), op), code
    return found[0]


def enter(op: Any, at: tuple[CodeType, int] | None = None) -> int:
    """Say that a call of `op` begins on this thread; returns its site, one for each op and line of the user's program: the caller's, or that of the
    instruction `at`.

    Costs well under a microsecond where that line has called the op before.
    """
    found = _entered.site = _site_of_caller(sys._getframe(1), op.name) if at is None else _site_of(*at, op.name)
    return found


def current_site() -> int:
    """The site that the last `enter` on this thread returned; 0 before the first."""
    return _entered.site


def site(op: str, wording: Wording, *facts: Hashable) -> int:
    """The number that a kernel of an op's forward reports; the same call with the same facts gives the same number.

    A record of it reads `wording(*facts, value, position, bound)`. The line is that of `enter`, or, where a corner is called
    by itself, the caller's.
    """
    at = _entered.site
    # a corner called by itself, or by another op's: what was entered last is not this op
    if not at or _sites[at][2] != op:
        at = _site_of_caller(sys._getframe(1), op)
    file, line, _, _, _ = _sites[at]
    return _site_number(file, line, op, wording, facts)


def check(storage: Any) -> None:
    """Raise IndexError for what kernels have reported in a GPU's error record, and forget it. To be called after a wait.

    Reads host memory only: `storage.pointer` is the record's address on the host as well.
    """
    fields = (ctypes.c_int64 * FIELDS).from_address(storage.pointer)
    # looked at without the lock, since every wait comes here
    if fields[0] <= 0:  # 0: nothing; below 0: a kernel that was not waited for is writing its record
        return
    with _lock:
        record = tuple(fields)
        if record[0] <= 0:
            return
        # before it is raised: the next wait must not tell of it again
        fields[0] = 0
    raise OutOfRangeError(describe(record))


def describe(record: tuple[int, ...]) -> str:
    """What a record says, and where the call stands in the user's program."""
    number, value, position, bound = record
    file, line, _, wording, facts = _sites[number]
    return f"{wording(*facts, value, position, bound)} (at {file_and_line(file, line)}, found when the device was waited for)"
