"""Work: a collective that was begun with async_op=True, and its Future."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tritensor.distributed.backends.interface import Pending
from tritensor.distributed.calls import Call
from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import future
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
        # A failed call raises each time: a second wait that returned True would pass for success.
        if self._error is not None:
            raise self._error
        try:
            self._pending.wait(None if timeout is None or not timeout else timeout.total_seconds())
        except BaseException as error:
            # Also KeyboardInterrupt: the results of a call that was left are never to be trusted.
            self._error = error
            raise
        self._settle()
        return True

    def _settle(self) -> None:
        # Once: results are copied to strided tensors only at the first wait, and later changes by the program stay.
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
        # A done call may have failed without anybody having waited: wait() finds it out.
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


class Future(future.Future[Any]):
    """The results of a Work, or a value that the program gives."""

    def __init__(self, work: Work | None = None) -> None:
        super().__init__()
        self._work = work

    def _arrive(self) -> None:
        self._refuse_nothing()
        try:
            value = self._compute()
        except Exception as error:
            self._complete(None, error)
        else:
            self._complete(value, None)

    def _refuse_nothing(self) -> None:
        if self._work is None:
            # Also where other threads run: those of a backend give it none.
            raise ArgumentError("Future.wait: nobody has given this future a value, and nothing computes one; call set_result first")

    def _compute(self) -> Any:
        assert self._work is not None
        self._work.wait()
        return self._work.result()

    def done(self) -> bool:
        """Whether wait() would return or raise at once."""
        return super().done() or (self._work is not None and self._work.is_completed())

    def _follow(self) -> None:
        if self._work is not None:
            self._work.when_settled(self._await)
