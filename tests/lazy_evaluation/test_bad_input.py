"""Lazy regions where something goes wrong, and where programs leave them: errors, interrupts, memory, threads, processes, generators."""

from __future__ import annotations

import asyncio
import copy
import io
import os
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor.fusion import plan, running
from tritensor.ground.thread_state import here
from tritensor.utils.data import DataLoader, TensorDataset

RUNS = range(3)  # in the second and third a path is known
BAD = tt.tensor([0, 9])


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    here.own_segment = None
    yield
    assert here.segment is None or os.environ.get("TRITENSOR_LAZY")


def failing(patch: pytest.MonkeyPatch, error: type[BaseException], *given: str) -> None:
    """Let whatever runs raise an error."""

    def fails(*args: Any, **named: Any) -> Any:
        raise error(*given)

    patch.setattr(plan, "_run_call", fails)
    patch.setattr(plan.Plan, "_run_group", fails)
    patch.setattr(running, "run", fails)


# -- errors
def test_the_op_and_the_line_are_named() -> None:
    for _ in RUNS:
        with tt.lazy():
            y = tt.ones(3) * 2
            z = y[BAD] + 1
            with pytest.raises(IndexError) as error:
                z.tolist()
            assert any("in index_get, called at" in note and "test_bad_input.py" in note for note in error.value.__notes__)
            assert (y + 1).tolist() == [3, 3, 3]  # what does not hang on it
            with pytest.raises(IndexError):
                z.tolist()


def test_a_bad_index_is_told_though_nobody_holds_what_it_picks() -> None:
    for _ in RUNS:
        with pytest.raises(IndexError), tt.lazy():
            (tt.ones(3) * 2)[BAD] * 3


def test_an_error_leaves_memory_as_it_was_when_it_came() -> None:
    x = tt.ones(3)
    tt.evaluate(x)
    with pytest.raises(IndexError), tt.lazy():  # noqa: PT012
        x.add_(1)
        _ = (x * 2)[BAD]
        x.mul_(2)
    assert x.tolist() == [2, 2, 2]
    for k in RUNS:  # and can be computed with
        with tt.lazy():
            x.add_(1)
        assert x.tolist() == [k + 3.0] * 3


def test_an_error_keeps_what_was_written_over_and_over() -> None:
    for _ in RUNS:
        x, y = tt.ones(2, 2), tt.zeros(2, 2)
        v = x[0]
        tt.evaluate(x)
        with pytest.raises(IndexError), tt.lazy():  # noqa: PT012
            x.copy_(y + 3)
            v.add_(1)
            y.sub_(x)
            _ = (x * 2)[BAD]
            y.zero_()
            v.copy_(y[1])
        assert (x.tolist(), y.tolist()) == ([[4, 4], [3, 3]], [[-4, -4], [-3, -3]])


def test_results_beside_an_error() -> None:
    for _ in RUNS:
        with pytest.raises(IndexError), tt.lazy():  # noqa: PT012
            p = tt.ones(3)
            p.add_(1)
            z, q = p[BAD], p * 2
        assert (q.tolist(), p.tolist()) == ([4, 4, 4], [2, 2, 2])
        with pytest.raises(IndexError):
            z.tolist()


def test_an_error_of_python_leaves_what_was_noted() -> None:
    for k in RUNS:
        x = tt.ones(3)
        with pytest.raises(ValueError, match="mine"), tt.lazy():  # noqa: PT012
            y = x * 2
            x.add_(k)
            raise ValueError("mine")
        assert (y.tolist(), x.tolist()) == ([2, 2, 2], [1.0 + k] * 3)


def test_wrong_arguments_are_told_at_their_line() -> None:
    for _ in RUNS:
        with tt.lazy():
            y = tt.ones(3) * 2
            with pytest.raises(tt.ShapeError):
                y + tt.ones(4)
            with pytest.raises(TypeError):
                y + "one"
            z = y + 1
        assert z.tolist() == [3, 3, 3]


# -- interrupts and memory
def test_an_interrupt_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for k in RUNS:
        x = tt.ones(3)
        with tt.lazy():
            x.add_(k)
            z = tt.exp(x.cumsum(0) * 0)
            with monkeypatch.context() as patch:
                failing(patch, KeyboardInterrupt)
                with pytest.raises(KeyboardInterrupt):
                    z.tolist()
            assert here.calling == ""  # no later message names what was interrupted
            assert z.tolist() == [1, 1, 1]
            assert x.tolist() == [k + 1.0] * 3


def test_an_interrupt_at_the_end_of_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for k in RUNS:
        x = tt.ones(3)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), tt.lazy():  # noqa: PT012
            x.add_(k)
            y = x.cumsum(0)
            failing(patch, KeyboardInterrupt)
        assert (x.tolist(), y.tolist()) == ([k + 1.0] * 3, [k + 1.0, 2 * k + 2.0, 3 * k + 3.0])


def test_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.ones(3)
    tt.evaluate(x)
    with tt.lazy():
        for _ in RUNS:
            y = x.cumsum(0)
            z = tt.exp(y * 0)
            with monkeypatch.context() as patch:
                failing(patch, MemoryError, "Unable to allocate 1 GiB")
                with pytest.raises(MemoryError, match="1 GiB") as error:
                    z.tolist()
            assert any("evaluate" in note for note in error.value.__notes__)
            assert here.segment is not None
            assert not here.segment.calls
            assert not here.segment.leaves
            assert tt.exp(x * 0).tolist() == [1, 1, 1]


def test_out_of_memory_on_a_gpu() -> None:
    with tt.lazy():
        y = tt.ones(4, device="cuda") + 1
        z = (tt.ones(1 << 45, device="cuda") + 1).sum()
        with pytest.raises(tt.OutOfMemoryError) as error:
            z.item()
        assert any("evaluate" in note for note in error.value.__notes__)
        assert y.tolist() == [2, 2, 2, 2]


# -- threads and processes
def in_thread(f: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start()
    thread.join()
    return found[0]


def test_another_thread_asks() -> None:
    x = tt.ones(3)
    with tt.lazy():
        for _ in RUNS:
            y = x * 2
            z = y + 1
            assert in_thread(lambda: (z.tolist(), (y * 3).tolist())) == ([3, 3, 3], [6, 6, 6])  # noqa: B023


def test_another_thread_has_a_region_of_its_own() -> None:
    def other(z: Any, y: Any) -> Any:
        with tt.lazy():
            found = z * 2 + y
        return found.tolist()

    x = tt.ones(3)
    with tt.lazy():
        for _ in RUNS:
            y = x * 2
            z = y + 1
            assert in_thread(lambda: other(z, y)) == [8, 8, 8]  # noqa: B023


def test_another_thread_writes() -> None:
    x = tt.ones(3)
    with tt.lazy():
        for k in RUNS:
            y = x * 2
            in_thread(lambda: x.add_(1))
            assert (y.tolist(), (x * 2).tolist()) == ([2.0 * k + 2] * 3, [2.0 * k + 4] * 3)


def test_fork() -> None:
    x = tt.ones(3)
    with tt.lazy():
        for _ in RUNS:
            y = x * 2
            z = y + 1
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(theirs, repr((z.tolist(), (y * 5).tolist())).encode())
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            assert os.read(ours, 1000).decode() == repr(([3.0] * 3, [10.0] * 3))
            assert z.tolist() == [3, 3, 3]


def test_pickles_and_copies() -> None:
    x = tt.ones(3)
    with tt.lazy():
        for _ in RUNS:
            y = x * 2
            z, v = y + 1, y[1:]
            a, b = pickle.loads(pickle.dumps([y, v]))
            c, d = copy.deepcopy(z), copy.copy(z)
            a.add_(1)
            assert [t.tolist() for t in (a, b, c, d)] == [[3, 3, 3], [2, 2], [3, 3, 3], [3, 3, 3]]
            file = io.BytesIO()
            tt.save({"y": y}, file)
            file.seek(0)
            assert tt.load(file)["y"].tolist() == [2, 2, 2]


class Doubled:
    """A data set whose items are computed of a lazy tensor."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Any:
        return self.x[i] * 2


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders(workers: int) -> None:
    with tt.lazy():
        x = tt.arange(4.0) * 2
        for _ in range(2):
            assert [(b + 1).tolist() for b in DataLoader(Doubled(x), batch_size=2, num_workers=workers)] == [[1, 5], [9, 13]]
            assert [(b + 1).tolist() for (b,) in DataLoader(TensorDataset(x), batch_size=2, num_workers=workers)] == [[1, 3], [5, 7]]


# -- functions that are left and entered again
def test_recursion() -> None:
    @tt.lazy()
    def f(n: int) -> Any:
        x = tt.ones(3) * n
        return x if n < 2 else f(n - 1) + f(n - 2)

    assert [f(6).tolist() for _ in RUNS] == [[8, 8, 8]] * 3


def results(n: int) -> Iterator[Any]:
    with tt.lazy():
        for k in RUNS:
            y = tt.ones(3) * (k + n)
            yield y + 1


def test_generators() -> None:
    assert [y.tolist() for y in results(0)] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]
    assert [(a + b).tolist() for a, b in zip(results(1), results(10), strict=True)] == [[13.0] * 3, [15.0] * 3, [17.0] * 3]


def test_a_generator_that_is_closed() -> None:
    made = results(1)
    y = next(made)
    z = y * 2
    made.close()
    assert (y.tolist(), z.tolist()) == ([2, 2, 2], [4, 4, 4])


def test_asynchronous_functions() -> None:
    async def steps(n: int) -> AsyncIterator[Any]:
        with tt.lazy():
            for k in RUNS:
                y = tt.ones(3) * (k + n)
                await asyncio.sleep(0)
                yield y + 1

    async def all_of(n: int) -> list[Any]:
        return [y.tolist() async for y in steps(n)]

    async def both() -> Any:
        return await asyncio.gather(all_of(1), all_of(10))

    assert asyncio.run(both()) == [[[k + 2.0] * 3 for k in RUNS], [[k + 11.0] * 3 for k in RUNS]]


def test_long_segments_run_by_themselves() -> None:
    x = tt.zeros(3)
    with tt.lazy():
        for _ in range(5000):
            x = x + 1
        assert x.tolist() == [5000, 5000, 5000]
