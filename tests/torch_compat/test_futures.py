"""torch.futures: values that threads give one another, what is done with them, errors on the way."""

from __future__ import annotations

import threading
import time

import pytest

import tritensor as tt
from tritensor.futures import Future, collect_all, wait_all


def test_a_value_of_another_thread_is_waited_for() -> None:
    made: Future[int] = Future()
    doubled = made.then(lambda done: done.value() * 2)

    def give() -> None:
        time.sleep(0.02)
        made.set_result(3)

    thread = threading.Thread(target=give)
    thread.start()
    assert doubled.wait() == 6
    assert made.wait() == made.value() == 3
    thread.join()


def test_an_error_comes_in_place_of_the_value() -> None:
    made: Future[int] = Future()
    assert not made.done()
    after, later = made.then(lambda done: done.wait()), made.then(lambda done: 1 // 0)
    made.set_exception(KeyError("given"))
    for f in (made, after):
        assert f.done()
        with pytest.raises(KeyError, match="given"):
            f.wait()
    with pytest.raises(ZeroDivisionError):
        later.value()


def test_a_callback_that_fails_is_told_and_hurts_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    made: Future[int] = Future()
    seen: list[int] = []
    made.add_done_callback(lambda done: seen.append(1 // 0))
    made.add_done_callback(lambda done: seen.append(done.value()))
    made.set_result(4)
    assert seen == [4]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_several_are_collected() -> None:
    a, b = Future[tt.Tensor](), Future[tt.Tensor]()
    both = collect_all([a, b]).then(lambda done: sum(f.value() for f in done.value()))
    a.set_result(tt.ones(2))
    assert not both.done()
    b.set_result(tt.ones(2))
    assert both.wait().tolist() == [2.0, 2.0]
    assert wait_all([a, b])[0] is a.wait()
    assert collect_all([]).wait() == []
    c: Future[int] = Future()
    c.set_exception(ValueError("of one"))
    with pytest.raises(ValueError, match="of one"):
        wait_all([a, c])
    with pytest.raises(TypeError, match="3 is a int"):
        collect_all([3])  # type: ignore[list-item]


def test_what_would_never_end_or_come_twice_is_refused() -> None:
    made: Future[int] = Future()
    with pytest.raises(RuntimeError, match="not there yet"):
        made.value()
    with pytest.raises(TypeError, match="cannot be called"):
        made.then(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give an exception"):
        made.set_exception(3)  # type: ignore[arg-type]
    if threading.active_count() == 1:
        with pytest.raises(ValueError, match="no other thread"):
            made.wait()
    made.set_result(1)
    for again in (lambda: made.set_result(2), lambda: made.set_exception(KeyError())):
        with pytest.raises(RuntimeError, match="only once"):
            again()


def test_a_call_that_was_forked_is_one() -> None:
    forked = tt.jit.fork(lambda a: a + 1, 2)
    assert isinstance(forked, Future)
    assert tt.jit.wait(forked.then(lambda done: done.wait() * 2)) == 6
    assert tt.Future is tt.jit.Future is tt.futures.Future
