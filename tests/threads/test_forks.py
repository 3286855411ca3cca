"""Forks beside threads: whatever the others were doing, the child can load ops, compute and start threads of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.data.worker_datasets import Rows
from tritensor.cuda.jit import deferred as deferred_jit
from tritensor.data import DataLoader
from tritensor.ground.process import locks
from tritensor.llvm import compiler, threads

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*processors for this process")
ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **environment: str) -> str:
    """What a program of this folder prints, in a process of its own. Its bytecode is kept: hundreds of processes import the same files."""
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONDONTWRITEBYTECODE")} | environment
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    assert "Exception ignored" not in done.stderr, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp().parent / "bytecode")}


@pytest.mark.parametrize(("first", "rounds"), [(1, 2), pytest.param(100, 30, marks=[pytest.mark.slow, pytest.mark.full])])
def test_forks_while_threads_load_ops(first: int, rounds: int, bytecode: dict[str, str]) -> None:
    said = run("tests.threads.forking", str(first), str(rounds), **bytecode)
    assert said.strip().endswith("bad seeds: []"), said[-5000:]


def in_child(work: Callable[[], Any]) -> int:
    """The exit status of a child that does `work()` within ten seconds."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def beside(work: Callable[[threading.Event, threading.Event], None]) -> Iterator[None]:
    """A thread inside of `work(there, on)`, which has said `there` and waits for `on`."""
    there, on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, args=(there, on))
    thread.start()
    assert there.wait(10)
    try:
        yield
    finally:
        on.set()
        thread.join()


@pytest.mark.parametrize("make", [locks.lock, locks.rlock])
def test_a_lock_that_another_thread_holds_is_free_in_the_child(make: Callable[[], Any]) -> None:
    lock = make()

    def holds(there: threading.Event, on: threading.Event) -> None:
        with lock:
            there.set()
            on.wait()

    with beside(holds):
        assert in_child(lambda: lock.acquire(timeout=5) or os._exit(2)) == 0
        assert not lock.acquire(blocking=False), "here it is held still"


def test_what_the_forking_thread_holds_it_holds_in_the_child() -> None:
    lock = locks.rlock()
    with lock:
        assert in_child(lambda: lock.release() or lock.acquire(timeout=5) or os._exit(2)) == 0


def test_a_fork_waits_for_work_that_must_not_be_cut() -> None:
    lock, ended = locks.held_over_forks(), []

    def works(there: threading.Event, on: threading.Event) -> None:
        with lock:
            there.set()
            time.sleep(0.3)
            ended.append(True)
        on.wait()

    with beside(works):
        assert in_child(lambda: ended or os._exit(2)) == 0
        with lock:
            assert in_child(lambda: lock.acquire(timeout=5) or os._exit(2)) == 0
    assert compiler._compiling in locks._over_forks


def test_a_kernel_that_another_thread_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: the lock of deferred kernels stayed held in the child, and its first op waited for ever."""
    there, on = threading.Event(), threading.Event()

    def slow(self: Any, fn: Any) -> None:
        there.set()
        on.wait(10)
        self.arg_names = ["x"]

    kernel = deferred_jit.DeferredJITFunction(lambda x: x)
    with deferred_jit.deferred_jit():
        thread = threading.Thread(target=lambda: kernel.arg_names)
        with monkeypatch.context() as patch:
            patch.setattr(deferred_jit._Eager, "__init__", slow)
            thread.start()
            assert there.wait(10)
            assert in_child(lambda: deferred_jit._constructing.acquire(timeout=5) or os._exit(2)) == 0
            on.set()
            thread.join()


def test_deferred_kernels_of_other_threads_end_with_them() -> None:
    def loads(there: threading.Event, on: threading.Event) -> None:
        with deferred_jit.deferred_jit():
            there.set()
            on.wait()

    def checks() -> None:
        assert deferred_jit.jit.JITFunction is deferred_jit._Eager
        with deferred_jit.deferred_jit():
            assert deferred_jit.jit.JITFunction is deferred_jit.DeferredJITFunction
        assert deferred_jit.jit.JITFunction is deferred_jit._Eager

    with beside(loads):
        assert deferred_jit.jit.JITFunction is deferred_jit.DeferredJITFunction
        assert in_child(checks) == 0
    assert deferred_jit.jit.JITFunction is deferred_jit._Eager


def test_a_file_that_another_thread_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps the import's lock in the child, for a thread that is not there."""
    (tmp_path / "half_imported.py").write_text("import sys; sys.modules['_half'].at_it(); whole = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    events: dict[str, Any] = {}
    half: Any = types.ModuleType("_half")
    half.at_it = lambda: (events["there"].set(), events["on"].wait()) if os.getpid() == here else None
    monkeypatch.setitem(sys.modules, "_half", half)
    here = os.getpid()

    def imports(there: threading.Event, on: threading.Event) -> None:
        events.update(there=there, on=on)
        import half_imported  # noqa: F401

    def asks() -> None:
        import half_imported

        assert half_imported.whole

    with beside(imports):
        assert in_child(asks) == 0
    asks()
    del sys.modules["half_imported"]


def test_blas_has_its_threads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = threads._Alone()
    monkeypatch.setattr(threads, "single_threaded_blas", alone)
    set_to: list[int] = []
    monkeypatch.setattr(threads, "blas", lambda: threads.Blas(set_to.append, lambda: 3, {}))

    def inside(there: threading.Event, on: threading.Event) -> None:
        with alone:
            there.set()
            on.wait()

    def checks() -> None:
        alone.in_child()
        assert (alone.inside, set_to[-1]) == (0, 3)
        with alone:
            assert set_to[-1] == 1
        assert set_to[-1] == 3

    locks.in_child(alone.in_child)
    try:
        with beside(inside):
            assert in_child(checks) == 0
    finally:
        locks._mending.remove(alone.in_child)


def test_forked_workers_while_threads_load_ops(bytecode: dict[str, str]) -> None:
    said = run("tests.threads.forking_loader", **bytecode)
    assert said.split() == ["276.0"] * 3


def test_a_loader_forks() -> None:
    batches = list(DataLoader(Rows(8), batch_size=4, num_workers=2, multiprocessing_context="fork"))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
