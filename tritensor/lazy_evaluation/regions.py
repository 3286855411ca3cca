"""Regions: whether a thread notes ops, as the whole program counts it; and a region that stays open behind the function that opened it."""

from __future__ import annotations

import weakref
from typing import Any

from tritensor.ground import shortcuts, thread_state
from tritensor.ground.thread_state import here

_left_open: set[int] = set()  # segments, by id


def open_region(segment: Any) -> None:
    """Let this thread note ops in a segment."""
    here.segment, here.cursor = segment, segment.cursor
    shortcuts.turn("lazy", 1)  # while one is open, no plan is taken


def close_region() -> None:
    """Let this thread run ops as they are called again."""
    _left_open.discard(id(here.segment))
    here.segment, here.cursor = None, thread_state.nowhere
    shortcuts.turn("lazy", -1)


def leave_open(segment: Any) -> None:
    """Let this thread's region stay open although what opened it is over, as values of the graph wait: whoever opens one next goes on with it."""
    _left_open.add(id(segment))


def go_on(segment: Any) -> bool:
    """Whether a region was left open, which is then the caller's."""
    found = id(segment) in _left_open
    _left_open.discard(id(segment))
    return found


def is_left_open(segment: Any) -> bool:
    """Whether nobody is inside of an open region."""
    return id(segment) in _left_open


class _Thread:
    """What a thread holds for as long as it runs."""


def close_with_thread(segment: Any) -> None:
    """When this thread ends, the region that it has left open is open no more, and what waits in it for nobody does not wait."""
    here.lasting = _Thread()
    weakref.finalize(here.lasting, _end, segment).atexit = False


def _end(segment: Any) -> None:
    if go_on(segment):
        shortcuts.turn("lazy", -1)
    if not segment.held():  # what others hold they will ask for
        segment.settle()
