"""A program that does again what it did is followed: no call is noted, whichever of the ways that it has taken before it goes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.regions import close_region

a = tt.tensor([1.0, 2.0, 3.0])
w = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)


def follows() -> bool:
    """Whether what was called since a value was asked for last has been passed over."""
    segment = here.segment
    assert segment is not None
    return segment.cursor.follows and not segment.calls


def straight(k: int) -> Any:
    return (a * 2 + 1).exp().sum()


def two_ways(k: int) -> Any:
    y = a * 2
    y = y + 1 if k % 2 else y - 1
    return y.sum()


def three_ways(k: int) -> Any:
    y = a * 2
    y = (y + 1, y - 1, y * y)[k % 3]
    return y.amax()


def other_beginnings(k: int) -> Any:
    y = a * 2 if k % 2 else a * 3
    return y + 1


def views_and_writes(k: int) -> Any:
    y = a * 2
    y[1:].add_(1)
    return y[:2].clone()


def given_anew(k: int) -> Any:
    x = tt.tensor([1.0, float(k), 3.0])
    return (x * a).sum()


def drawn(k: int) -> Any:
    return tt.nn.functional.dropout(a, 0.5) * tt.rand(3)


def graded(k: int) -> Any:
    with tt.no_grad():
        return (w * w).sum() + 1


@pytest.mark.parametrize(
    "program", [straight, two_ways, three_ways, other_beginnings, views_and_writes, given_anew, drawn, graded], ids=lambda f: f.__name__
)
def test_known_programs(program: Callable[[int], Any]) -> None:
    here.own_segment = None
    with tt.lazy():
        for k in range(12):
            y = program(k)
            if k >= 6:
                assert follows(), k
            y.tolist()


def test_tensors_that_are_given_are_not_kept() -> None:
    here.own_segment = None
    marks = []
    with tt.lazy():
        for _ in range(4):
            x = tt.tensor([1.0, 2.0, 3.0])
            marks.append(weakref.ref(x))
            y = x * 2
            y.tolist()
            del x
        assert [m() for m in marks[1:]] == [None] * 3  # the first is where it was noted


def test_a_generator_that_another_thread_closes() -> None:
    def turns() -> Iterator[Any]:
        with tt.lazy():
            yield tt.ones(3) * 2

    suspended = turns()
    y = next(suspended)
    found = []

    def work() -> None:
        with tt.lazy():
            z = tt.ones(3) + 1
            suspended.close()
            assert here.segment is not None
            found.append((z * 2).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[4, 4, 4]]
    assert here.segment is not None  # the region is this thread's still: nobody has ended it here
    close_region()
    assert y.tolist() == [2, 2, 2]


def test_many_functions_that_begin_alike_are_all_known() -> None:
    x = tt.ones(4)
    followed = []

    def made(k: int) -> Callable[[], Any]:
        @tt.compile
        def function() -> Any:
            y = x + 1
            z = y * k
            followed.append(follows())
            return z

        return function

    functions = [made(k) for k in range(30)]
    for _ in range(3):
        followed.clear()
        for k, f in enumerate(functions):
            assert f().tolist() == [2.0 * k] * 4
    assert all(followed)
