"""Shortcuts past single ops, which plans take: off while somebody looks at single ops (a profile, a mode, autocast, hooks), or a call is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tritensor.ground.process import locks
from tritensor.ground.thread_state import here

_counting = locks.lock()
_reasons = {"watching": 0, "learning": 0}
_readers: list[dict[str, Any]] = []  # the globals of modules that read the switch by the name OFF: sooner read than an attribute


def read_by(names: dict[str, Any]) -> None:
    """A module says, with its globals(), that it reads OFF."""
    with _counting:
        _readers.append(names)
        names["OFF"] = any(_reasons.values())


def turn(reason: str, more: int) -> None:
    """One more reason (1), or one fewer (-1), to make every call the long way; of all threads, as none of them is asked which it is."""
    with _counting:
        _reasons[reason] += more
        _tell()


def _tell() -> None:
    off = any(_reasons.values())
    for names in _readers:
        names["OFF"] = off


@contextmanager
def suspended() -> Iterator[None]:
    """Inside, no call runs a plan, and none is learnt."""
    turn("watching", 1)
    try:
        yield
    finally:
        turn("watching", -1)


def _in_child() -> None:
    """A forked child has none of the threads that were learning."""
    _reasons["learning"] = 0
    _tell()


locks.in_child(_in_child)


def note_values_read() -> None:
    """A function says that it looks at values to decide what it does: a call of it is not planned."""
    if here.noting is not None:
        here.noting.spoil("it reads values")
