"""Threads beside the caller's: BLAS in folders of any name, work that fails, a process that is ending."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.llvm import compiler, products, threads, workers


def test_blas_in_a_folder_with_a_space(tmp_path: Path) -> None:
    """As in "/home/my name": what the system tells of mapped files is not cut at the space."""
    (tmp_path / "my name").mkdir()
    copied = tmp_path / "my name" / "libblas_beside.so"
    shutil.copy(_ctypes.__file__, copied)
    program = f"import ctypes; ctypes.CDLL({str(copied)!r}); from tritensor.llvm import threads; print(threads.count() > 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_nobody_writes_any_more_when_an_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 3)
    ended = []

    def work(low: int, high: int) -> None:
        if low == 1:
            raise ValueError("at once")
        if low == 2:
            time.sleep(0.05)
            ended.append(low)

    with pytest.raises(ValueError, match="at once"):
        threads.share(work, 3)
    assert ended == [2]


def test_work_at_the_end_of_the_process() -> None:
    """Python starts no thread behind its last line, and those that wait do not keep it."""
    program = (
        "import atexit, sys; from tritensor.llvm import threads; threads.count = lambda: 3; seen = []\n"
        "work = lambda: threads.share(lambda low, high: seen.extend(range(low, high)), 9)\n"
        "if sys.argv[1] == 'before': work(), seen.clear()\n"
        "atexit.register(lambda: (work(), print(sorted(seen))))"
    )
    for when in ("before", "behind"):
        done = subprocess.run([sys.executable, "-c", program, when], capture_output=True, text=True, env=dict(os.environ), timeout=120)
        assert (done.returncode, done.stdout.strip()) == (0, str(list(range(9)))), done.stderr


def test_one_caller_at_a_time_has_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 2)
    found: list[Any] = []
    threads.share(lambda low, high: threads.share(lambda a, b: found.append((a, b)), 2), 2)
    assert found == [(0, 2)] * 2
    assert workers.of_count(1) is workers.of_count(1)
    assert threads.call(workers.address(plus_one()), 2, lambda low, high: [8 * low]) == 1 | 9


def plus_one() -> Any:
    return compiler.build(compiler._PROBE)


def test_functions_with_many_callers_and_rests_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that sleep are woken, whatever they did before; several callers at once are all served."""
    monkeypatch.setattr(threads, "count", lambda: 3)
    address, wrong = workers.address(plus_one()), []

    def asked() -> None:
        for n in range(60):
            answer = threads.call(address, 3, lambda low, high, n=n: [1 << (low + 8 * (n % 5))])
            if answer not in (None, (7 << 8 * (n % 5)) | 1):
                wrong.append((n, answer))
            seen: list[int] = []
            threads.share(lambda low, high, seen=seen: seen.extend(range(low, high)), 7)
            if sorted(seen) != list(range(7)):
                wrong.append((n, seen))
            time.sleep(0.001 * (n % 3))

    callers = [threading.Thread(target=asked) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_child_has_workers_of_its_own() -> None:
    program = (
        "import os; from tritensor.llvm import threads; threads.count = lambda: 2; seen = []\n"
        "work = lambda: threads.share(lambda low, high: seen.append((low, high)), 2)\n"
        "work(); child = os.fork(); seen.clear(); work()\n"
        "assert sorted(seen) == [(0, 1), (1, 2)], seen\n"
        "os._exit(0) if child == 0 else None\n"
        "assert os.waitpid(child, 0)[1] == 0"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# -- what threads share gives the same, bit for bit, as one alone
def both(monkeypatch: pytest.MonkeyPatch, work: Any) -> tuple[Any, Any]:
    monkeypatch.setattr(threads, "count", lambda: 1)
    alone = work()
    monkeypatch.setattr(threads, "count", lambda: 3)
    return alone, work()


def test_loops_rows_and_tables_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    call = threads.call
    monkeypatch.setattr(threads, "call", lambda *given: calls.append(given[1]) or call(*given))
    rng = np.random.default_rng(0)
    for kind in (tt.float32, tt.float64, tt.bfloat16):
        x, y = (tt.from_numpy(rng.standard_normal((257, 301))).to(kind) for _ in range(2))

        def work(x: tt.Tensor = x, y: tt.Tensor = y) -> list[Any]:
            leaf = x.clone().requires_grad_()
            out = tt.nn.functional.layer_norm(tt.nn.functional.gelu((leaf * y).exp().clamp(max=3)), (301,)).softmax(1)
            image = tt.nn.functional.batch_norm(leaf.reshape(1, 257, 301), None, None, training=True)
            (g,) = tt.autograd.grad((out * y).sum() + (image * y).sum(), leaf)
            step = leaf.detach().clone().requires_grad_()
            others = [p.detach().clone().requires_grad_() for p in (y[:3], y, y[5:60])]
            opt = tt.optim.Adam([step, *others], lr=0.1)
            for p in (step, *others):
                p.grad = p.detach().sin()
            opt.step()
            return [t.detach().float().numpy() for t in (out, image, g, step, *others)]

        for alone, shared in zip(*both(monkeypatch, work), strict=True):
            np.testing.assert_array_equal(alone, shared)
    assert len(calls) > 30


def test_numbers_that_machine_code_leaves_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a loop that gives up is the whole loop's answer."""
    x = tt.linspace(-4, 4, 1 << 16, dtype=tt.float64)
    x[-1] = 1e300
    for f in (tt.sin, tt.tan, tt.special.digamma):
        alone, shared = both(monkeypatch, lambda f=f: f(x).numpy())
        np.testing.assert_array_equal(alone, shared)


LAYOUTS = {"C": lambda x: x, "F": lambda x: np.asfortranarray(x), "window": lambda x: np.pad(x, ((0, 0), (3, 5)))[:, 3:-5],
           "gaps": lambda x: np.repeat(x, 2, 1)[:, ::2], "reversed": lambda x: x[::-1].copy()[::-1]}  # fmt: skip


@pytest.mark.parametrize(
    "sizes", [(64, 300, 512), (512, 300, 64), (1, 3000, 900), (900, 3000, 1), (33, 17, 5000), (40, 1, 60000), (2000, 2000, 2)]
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_by_parts(sizes: tuple[int, int, int], kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 3)
    rng = np.random.default_rng(0)
    (m, k, n), eps = sizes, np.finfo(kind).eps
    a, b = rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    wanted, bound = a.astype(np.float64) @ b.astype(np.float64), 8 * eps * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    for one in LAYOUTS.values():
        for other in LAYOUTS.values():
            assert (np.abs(products.matmul(one(a), other(b)) - wanted) <= bound).all()
    for into in (np.empty((m, n), kind), np.empty((n, m), kind).T, np.empty((m, n + 4), kind)[:, 2:-2]):
        assert products.matmul(a, b, into) is into
        assert (np.abs(into - wanted) <= bound).all()


@pytest.mark.parametrize("count", [1, 3])
def test_few_rows_by_a_weight_are_multiplied_the_other_way_round(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: count)
    rng = np.random.default_rng(0)
    for rows in (1, 2, 33, 96, 97):
        x, w = rng.standard_normal((rows, 256)).astype(np.float32), rng.standard_normal((768, 256)).astype(np.float32)
        bound = 8 * np.finfo(np.float32).eps * (np.abs(x).astype(np.float64) @ np.abs(w.T).astype(np.float64))
        y, into = products.matmul(x, w.T), np.empty((rows, 768), np.float32)
        assert products._should_turn(x, w.T) is (1 < rows <= 96)
        assert y.flags.c_contiguous
        assert (np.abs(y - x.astype(np.float64) @ w.T.astype(np.float64)) <= bound).all()
        assert products.matmul(x, w.T, into) is into
        np.testing.assert_array_equal(into, y)


def test_programs_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread's calls one after the other; by one thread where others are at work, or there is one program."""
    room = np.arange(6)
    copy = compiler.build_typed(
        "define void @run(ptr %to, ptr %from) {\n  %x = load i64, ptr %from\n  store i64 %x, ptr %to\n  ret void\n}\n",
        None, ctypes.c_void_p, ctypes.c_void_p,
    )  # fmt: skip
    at, both_of_them = room.ctypes.data, [[(0, 1), (2, 0)], [(3, 4), (5, 3)]]
    for programs, wanted in ((both_of_them, [1, 1, 1, 4, 4, 4]), (both_of_them[:1], [1, 1, 1, 3, 4, 5])):
        for _ in range(2):
            room[:] = range(6)
            threads.run_programs([[(copy, (at + 8 * to, at + 8 * from_)) for to, from_ in calls] for calls in programs])
            assert room.tolist() == wanted
            monkeypatch.setattr(threads, "call_parts", lambda *given: None)
        monkeypatch.undo()


def test_many_products_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(products, "MANY", 1)
    monkeypatch.setattr(products, "_THREADED", 1)
    monkeypatch.setattr(products, "_MANY_FOR_PYTHON", 1)
    rng = np.random.default_rng(0)
    for left, right in (
        ((5, 8, 9), (5, 9, 7)),
        ((1, 8, 9), (5, 9, 7)),
        ((8, 9), (5, 9, 7)),
        ((2, 5, 8, 9), (5, 9, 7)),
        ((1, 40, 9), (1, 9, 7)),
        ((1, 8, 9), (1, 9, 70)),
    ):
        a, b = rng.standard_normal(left), rng.standard_normal(right)
        np.testing.assert_allclose(products.matmul(a, b), np.matmul(a, b), 1e-13, 1e-13)
        out = np.empty(np.matmul(a, b).shape)
        assert products.matmul(a, b, out) is out
        np.testing.assert_allclose(out, np.matmul(a, b), 1e-13, 1e-13)


def test_blas_is_alone_inside_and_itself_behind() -> None:
    found = threads.blas()
    assert found is not None
    before = found.get()
    try:
        found.set(2)
        with threads.single_threaded_blas:
            assert (found.get(), threads.count()) == (1, 2)
            with threads.single_threaded_blas:
                assert (found.get(), threads.count()) == (1, 2)
            assert (found.get(), threads.count()) == (1, 2)
        assert found.get() == threads.count() == 2
        with pytest.raises(ZeroDivisionError), threads.single_threaded_blas:
            _ = 1 / 0
        assert found.get() == 2
    finally:
        found.set(before)
