"""Threads that begin at the same moment, Python changing from one to the next all the time, and what each of them gives."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def switching(seconds: float = 1e-6) -> Iterator[None]:
    """A thread runs so long before the next one's turn."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def outcomes(*works: Callable[[], Any], seconds: float = 1e-6) -> list[Any]:
    """What each of the works gives, or the exception that it raises, in their order."""
    begin, found = threading.Barrier(len(works)), [None] * len(works)

    def run(i: int, work: Callable[[], Any]) -> None:
        begin.wait()
        try:
            found[i] = work()
        except BaseException as error:
            found[i] = error  # type: ignore[call-overload]

    with switching(seconds):
        threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


def together(*works: Callable[[], Any]) -> list[Any]:
    """What each of the works gives; none may raise."""
    found = outcomes(*works)
    errors = [x for x in found if isinstance(x, BaseException)]
    assert not errors, errors
    return found
