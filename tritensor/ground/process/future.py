"""Future: a value that another thread gives, or that is computed when somebody waits for it, and what is done with it then."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value to come. `set_result` or `set_exception` gives it, once, from any thread; `wait` waits for it; `then` goes on with it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._given = threading.Event()
        self._guard = locks.lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._before: Future[Any] | None = None
        self._after: list[Callable[[], Any]] = []

    def wait(self) -> T:
        """The value, once it is there. Raises what set_exception or the function of `then` gave in its place."""
        self._await()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def _await(self) -> None:
        """Return when there is a value or an error."""
        if not self._given.is_set():
            if self._before is not None:
                self._before._await()  # who completes it runs what comes after it, this one too
            else:
                self._arrive()
            self._given.wait()

    def _arrive(self) -> None:
        """Bring the value about, where it is not for another thread to give. Raises ArgumentError where there is no other thread."""
        if threading.active_count() == 1:  # it would wait for ever
            raise ArgumentError(
                "Future.wait: nobody has given this future a value, and no other thread runs that could; call set_result first"
            )

    def _complete(self, value: Any, error: BaseException | None) -> bool:
        """Keep the value or the error and do what comes after; False where there was one."""
        with self._guard:
            if self._given.is_set():
                return False
            self._value, self._error = value, error
            self._given.set()
            after, self._after = self._after, []
        for one in after:
            one()
        return True

    def value(self) -> T:
        """The value, or its error. Raises RuntimeError before it is there."""
        if not self.done():
            raise RuntimeError("Future.value: it is not there yet; wait() for it")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Give it its value. Raises RuntimeError where it has one."""
        if not self._complete(result, None):
            raise RuntimeError("Future.set_result: it has a value or an error already, and is given one only once")

    def set_exception(self, result: BaseException) -> None:
        """Give it an error in place of a value. Raises RuntimeError where it has a value."""
        if not isinstance(result, BaseException):
            raise ArgumentError(f"Future.set_exception: {result!r} is a {type(result).__name__}; give an exception")
        if not self._complete(None, result):
            raise RuntimeError("Future.set_exception: it has a value or an error already, and is given one only once")

    def done(self) -> bool:
        """Whether wait() would return or raise at once."""
        return self._given.is_set() or (self._before is not None and self._before.done())

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A Future of callback(this one), which runs when this one is done: at once, or in the thread that completes it or waits for it first.

        What the callback raises is the new one's error.
        """
        if not callable(callback):
            raise TypeError(f"Future.then: {callback!r} cannot be called; give a function of the future")
        made: Future[S] = Future()
        made._before = self

        def run() -> None:
            try:
                value = callback(self)
            except Exception as error:
                made._complete(None, error)
            else:
                made._complete(value, None)

        if self.done():
            self._await()
        with self._guard:
            waits = not self._given.is_set()
            if waits:
                self._after.append(run)
        if waits:
            self._follow()
        else:
            run()
        return made

    def _follow(self) -> None:
        """See to it that what comes after this one is done where somebody waits for something else than it."""

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call callback(this one) when `then` would; what it raises is written on stderr."""

        def call(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:
                traceback.print_exc()

        self.then(call)


class _Collected(Future[Any]):
    """A Future of others, which it waits for."""

    def __init__(self, futures: Sequence[Future[Any]]) -> None:
        super().__init__()
        self._futures = futures

    def _arrive(self) -> None:
        for one in self._futures:
            one._await()


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A Future of the list itself, done when all in it are. An error of one of them is its error.

    Raises TypeError for what is no Future.
    """
    futures = list(futures)
    for one in futures:
        if not isinstance(one, Future):
            raise TypeError(f"collect_all: {one!r} is a {type(one).__name__}; give a list of futures")
    made = _Collected(futures)
    left, guard = [len(futures)], locks.lock()

    def count(_: Future[Any]) -> None:
        with guard:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made._complete(futures, next((f._error for f in futures if f._error is not None), None))

    for one in futures:
        one.then(count)
    if not futures:
        made._complete(futures, None)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all, once they are there. Raises the first error among them."""
    return [one.wait() for one in collect_all(futures).wait()]
