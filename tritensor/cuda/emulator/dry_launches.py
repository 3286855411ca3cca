"""Launches that the emulated device checks and does not run: for questions whose answer is a shape or an address, and no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# of a context: another thread's launches must run
_dry: ContextVar[bool] = ContextVar("dry", default=False)


class ValuesAsked(Exception):
    """The host reads memory that a launch which was not run should have written."""


def dry() -> bool:
    """Whether this thread's launches are not run."""
    return _dry.get()


@contextmanager
def _hold_launches() -> Iterator[None]:
    before = _dry.set(True)
    try:
        yield
    finally:
        _dry.reset(before)


def without_values(ask: Callable[[], T]) -> T:
    """What `ask` finds while no kernel runs; where it reads what a kernel wrote, it is asked again while they do."""
    try:
        with _hold_launches():
            return ask()
    except ValuesAsked:
        return ask()
