"""Shortcuts past single ops, which plans take: off while somebody looks at single ops (a profile, a mode, autocast, hooks), or a call is learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tritensor.ground.process import locks
from tritensor.ground.thread_state import here

_counting = locks.lock()
_reasons = {"watching": 0, "learning": 0, "lazy": 0}
# The globals of modules that read the switch by the name OFF, or WATCHED, which lazy regions leave alone: sooner read than an attribute.
_readers: list[dict[str, Any]] = []
_lingers = False  # whether OFF says that a region is open, and none is any more
when_watched: list[Callable[[bool], None]] = []  # called when somebody begins or ceases to look at single ops


def read_by(names: dict[str, Any]) -> None:
    """A module says, with its globals(), that it reads OFF, or WATCHED."""
    with _counting:
        _readers.append(names)
        _tell()


def turn(reason: str, more: int) -> None:
    """One more reason (1), or one fewer (-1), to make every call the long way; of all threads, as none of them is asked which it is."""
    global _lingers
    with _counting:
        was = _reasons[reason]
        _reasons[reason] = now = was + more
        if not (was and now):
            if reason == "lazy" and (_lingers or not now):  # one region follows another: nobody is told before a call asks
                _lingers = not now
            else:
                _tell()
    if reason == "watching":
        for told in when_watched:
            told(_reasons[reason] > 0)


def cease_to_linger() -> bool:
    """Take shortcuts again after the last region has been closed. Gives whether that was yet to be said: OFF was no reason for the long way then."""
    if not _lingers:
        return False
    with _counting:
        _tell()
    return True


def _tell() -> None:
    global _lingers
    _lingers = False
    off, watched = any(_reasons.values()), bool(_reasons["watching"] or _reasons["learning"])
    for names in _readers:
        names["OFF"], names["WATCHED"] = off, watched


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
