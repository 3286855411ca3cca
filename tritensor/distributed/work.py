"""Work: a collective that was begun with async_op=True, and its Future."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tritensor.distributed.backends.interface import Pending
from tritensor.distributed.calls import Call
from tritensor.ground.errors import ArgumentError
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


class Future:
    """The results of a Work, or of what is done with them (`then`)."""

    def __init__(self, work: Work | None = None, before: Future | None = None, make: Callable[[Future], Any] | None = None) -> None:
        self._work, self._before, self._make = work, before, make
        self._value: Any = None
        self._error: BaseException | None = None
        self._set = False
        self._after: list[Callable[[], Any]] = []

    def wait(self) -> Any:
        """The value, once it is there. Raises what the work, the function of `then`, or set_exception gave in its place."""
        self._settle()
        if self._error is not None:
            raise self._error
        return self._value

    def _settle(self) -> None:
        """Wait until there is a value or an error, once, and go on with what comes after."""
        if not self._set:
            self._refuse_nothing()
            if self._before is not None:
                self._before._settle()  # which goes on with this one, where it was not done yet
        if not self._set:
            try:
                self._value = self._compute()
            except Exception as error:
                self._error = error
            self._set = True
        after, self._after = self._after, []
        for one in after:
            one()

    def _refuse_nothing(self) -> None:
        # A chain of `then` waits for its beginning, which alone can be without work.
        if self._before is not None:
            if not self._before._set:
                self._before._refuse_nothing()
        elif self._work is None:
            # A bare Future that nobody sets would wait for ever.
            raise ArgumentError("Future.wait: nobody has given this future a value, and nothing computes one; call set_result first")

    def _compute(self) -> Any:
        if self._work is not None:
            self._work.wait()
            return self._work.result()
        assert self._before is not None
        assert self._make is not None
        return self._make(self._before)

    def value(self) -> Any:
        """The value, or its error. Raises RuntimeError before it is there."""
        if not self.done():
            raise RuntimeError("Future.value: it is not there yet; wait() for it")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Give it its value."""
        self._value, self._set = result, True
        self._settle()

    def set_exception(self, result: BaseException) -> None:
        """Give it an error in place of a value."""
        self._error = result
        self.set_result(None)

    def done(self) -> bool:
        """Whether wait() would return or raise at once."""
        if self._set:
            return True
        if self._work is not None:
            return self._work.is_completed()
        return self._before is not None and self._before.done()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of callback(this one), which runs when this one is done: at once, or when it or its Work is waited for.

        What the callback raises is the new one's error.
        """
        made = Future(before=self, make=callback)
        # PyTorch runs the callback at once where the value is there, in the calling thread.
        if self.done():
            made._settle()
        else:
            self._after.append(made._settle)
            self._follow()
        return made

    def _follow(self) -> None:
        """Go on also where the Work is waited for, and not this one."""
        if self._work is not None:
            self._work.when_settled(self._settle)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call callback(this one) when `then` would; what it raises is written on stderr."""

        def call(done: Future) -> None:
            try:
                callback(done)
            except Exception:
                traceback.print_exc()

        self.then(call)
