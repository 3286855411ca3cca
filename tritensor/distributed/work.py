"""Work: a collective that was begun with async_op=True, and its Future."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tritensor.distributed.backends.interface import Pending
from tritensor.distributed.calls import Call
from tritensor.errors import ArgumentError
from tritensor.tensor.core import Tensor


class Work:
    """What a call with async_op=True returns: the tensors belong to it until `wait` has returned."""

    def __init__(self, pending: Pending, call: Call, results: Sequence[Tensor] = (), finish: Callable[[], None] | None = None) -> None:
        self._pending, self._call, self._results, self._finish = pending, call, list(results), finish
        self._error: BaseException | None = None
        self._then: list[Callable[[], Any]] = []

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True, once the results are there: on a GPU, once what is queued from now on sees them.

        Raises RankFailedError, which names who is missing, where they are not there within `timeout` (the group's, where None is given).
        """
        if self._error is not None:
            raise self._error
        try:
            self._pending.wait(None if timeout is None or not timeout else timeout.total_seconds())
        except BaseException as error:
            self._error = error
            raise
        self._settle()
        return True

    def _settle(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        then, self._then = self._then, []
        for one in then:
            one()

    def when_settled(self, do: Callable[[], Any]) -> None:
        """Call `do` at the end of the wait() that finds it done."""
        self._then.append(do)

    def is_completed(self) -> bool:
        """Whether it is done; never waits."""
        return self._error is not None or self._pending.done()

    def is_success(self) -> bool:
        """Whether it is done and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What it failed with, None where it did not or goes on."""
        if self._error is None and self._pending.done():
            try:
                self.wait()
            except Exception as error:
                return error
        return self._error

    def synchronize(self) -> None:
        """wait()."""
        self.wait()

    def ended(self) -> float:
        """time.perf_counter() when it was seen to be done, 0 where the backend does not look."""
        return self._pending.ended

    def source_rank(self) -> int:
        """Of a receive that is done: the number in the group of who sent."""
        return self._pending.source()

    def result(self) -> list[Tensor]:
        """The tensors that were written. Raises RuntimeError before it is done."""
        if not self.is_completed():
            raise RuntimeError(f"Work.result: {self._call} goes on; wait() first")
        self.wait()
        return self._results

    def get_future(self) -> Future:
        """A Future of the tensors that are written."""
        return Future(self)


class Future:
    """The results of a Work, or of what is done with them (`then`)."""

    def __init__(self, work: Work | None = None, before: Future | None = None, make: Callable[[Future], Any] | None = None) -> None:
        self._work, self._before, self._make = work, before, make
        self._value: Any = None
        self._set = False

    def wait(self) -> Any:
        """The value, once it is there. Raises what the work or the function of `then` raised."""
        if not self._set:
            if self._work is not None:
                self._work.wait()
                self._value = self._work.result()
            elif self._before is not None and self._make is not None:
                self._before.wait()
                self._value = self._make(self._before)
            else:
                raise ArgumentError("Future.wait: nobody has given this future a value, and nothing computes one; call set_result first")
            self._set = True
        return self._value

    def value(self) -> Any:
        """The value. Raises RuntimeError before it is there."""
        if not self.done():
            raise RuntimeError("Future.value: it is not there yet; wait() for it")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Give it its value."""
        self._value, self._set = result, True

    def done(self) -> bool:
        """Whether wait() would return at once."""
        if self._set:
            return True
        if self._work is not None:
            return self._work.is_completed()
        return self._before is not None and self._before.done()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of callback(this one), which runs when this one's value is there: at once, or when the Work is waited for."""
        made = Future(before=self, make=callback)
        root: Future = self
        while root._before is not None:
            root = root._before
        if self.done():
            made.wait()
        elif root._work is not None:
            root._work.when_settled(made.wait)
        return made
