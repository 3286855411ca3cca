"""Machine calls of a plan: groups and products in one table, large groups shared among threads, tables used by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.fusion import plan
from tritensor.fusion.machine_calls import MachineCalls
from tritensor.llvm import call_frames, compiler, workers
from tritensor.llvm import threads as llvm_threads
from tritensor.ops import replay

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"machine code: {compiler.refusal()}")
rng = np.random.default_rng(0)
x, y = (tt.tensor(rng.normal(size=(300, 400)).astype(np.float32)) for _ in range(2))
w = tt.tensor(rng.normal(size=400).astype(np.float32))
tall, small = (tt.tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((400, 64), (64, 64)))
square = tt.tensor(rng.normal(size=(400, 400)).astype(np.float32))


def norm(z: Any) -> Any:
    centred = z - z.mean(-1, keepdim=True)
    return centred * tt.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * w


PROGRAMS: dict[str, Callable[[], Any]] = {
    "elements": lambda: (x * 0.5 * (1 + tt.tanh(x + 0.1 * x * x * x)), x + y),
    "rows": lambda: norm(x * 2 + y),
    "rows of three axes": lambda: norm((x * 2).reshape(30, 10, 400)),
    "turned": lambda: (x.t() * 2 + y.t()) * w[:, None],
    "joined": lambda: x * w + tt.cat([-x[:, 200:], x[:, :200]], -1) * w,
    "dropout": lambda: tt.nn.functional.dropout(x * 2, 0.5) + y,
    "between products": lambda: norm(x @ square + y) @ square,
    "sums": lambda: ((x * y).sum(-1), (x * y).sum(-1, keepdim=True) * x),
}  # fmt: skip


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = tt.get_num_threads()
    yield tt.set_num_threads
    tt.set_num_threads(before)


def runs(program: Callable[[], Any], times: int = 4) -> list[list[Any]]:
    f, found = tt.compile(program), []
    for _ in range(times):
        tt.manual_seed(0)
        made = f()
        found.append([z.clone() for z in (made if isinstance(made, tuple) else (made,))])
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_large_group_is_shared_among_threads(name: str, threads: Callable[[int], None]) -> None:
    threads(1)
    (alone, *others) = runs(PROGRAMS[name])
    for count in (2, 3):
        threads(count)
        others += runs(PROGRAMS[name])
    threads(1)
    others += runs(PROGRAMS[name])
    for found in others:
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(alone, found, strict=True))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What is made of plans from now on, as it is made."""
    made, whole = [], plan.tables_of

    def noted(*args: Any) -> Any:
        made.append(whole(*args))
        return made[-1]

    monkeypatch.setattr(plan, "tables_of", noted)
    replay.forget()
    return made


def test_a_shared_group_is_an_entry_of_its_own(threads: Callable[[int], None], tables: list[list[Any]]) -> None:
    for count in (1, 2):
        threads(count)
        runs(lambda: ((x + y) * 2, (w + 1) * 3))
    assert [[type(entry) for entry in found] for found in tables] == [[MachineCalls], [MachineCalls, MachineCalls]]


def test_fewer_threads_than_parts_do_them_all(threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """As when others have told BLAS to use one."""
    threads(3)
    f = tt.compile(PROGRAMS["rows"])
    expected = [f().clone() for _ in range(4)][-1]
    alone = []
    whole = workers.call_all
    monkeypatch.setattr(llvm_threads, "count", lambda: 1)
    monkeypatch.setattr(workers, "call_all", lambda *args: (alone.append(args), whole(*args)))
    assert tt.equal(f(), expected)
    assert len(alone) == 3


def test_threads_of_pythons_use_one_plan_at_once() -> None:
    given = [tt.tensor(rng.normal(size=(8, 16)).astype(np.float32)) for _ in range(4)]
    wrong: list[int] = []

    def work(k: int) -> None:
        f = tt.compile(lambda z: tt.tanh(z * 2 + 1) @ z.t() + 1)
        expected = f(given[k]).clone()
        for _ in range(300):
            if not tt.equal(f(given[k]), expected):
                wrong.append(k)

    at_work = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in at_work:
        t.start()
    for t in at_work:
        t.join()
    assert not wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_whose_fields_are_not_where_they_were(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = runs(PROGRAMS[name])[-1]
    replay.forget()  # the plan that has frames
    monkeypatch.setattr(call_frames, "_fields_work", lambda: False)
    for found in runs(PROGRAMS[name]):
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(expected, found, strict=True))


def test_large_temporaries_are_not_held(threads: Callable[[int], None]) -> None:
    """Between two products lies a temporary, which is part of no frame when it is large."""
    threads(1)  # of several, BLAS shares large products by itself
    before = call_frames.Frame.__init__
    sizes: list[int] = []

    def noted(self: Any, *args: Any) -> None:
        before(self, *args)
        sizes.append(0 if self._held is None else self._held.nbytes)

    call_frames.Frame.__init__ = noted  # type: ignore[method-assign]
    try:
        runs(lambda: ((tall @ small + 1) * 2) @ small)
        runs(lambda: ((tall[:100] @ small + 1) * 2) @ small)
    finally:
        call_frames.Frame.__init__ = before  # type: ignore[method-assign]
    assert sizes
    assert min(sizes) == 0
    assert 0 < max(sizes) <= call_frames.KEPT
