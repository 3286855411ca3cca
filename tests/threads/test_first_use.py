"""Six threads that call a function for the process's first time at once: each gets the right answer, and so does whoever calls later."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.threads.together import together
from tritensor.autograd.node import AccumulateGrad, accumulator
from tritensor.cuda.runtime import active
from tritensor.dispatch import autocast
from tritensor.dispatch.plans import doors
from tritensor.ground.transforms.levels import Level
from tritensor.ops.table import Ops, ops
from tritensor.ops.table.lookup import Table

ROOT = Path(__file__).resolve().parents[2]
SHARES = 24  # of the calls: the quick suite asks one on the CPU
DEVICE_SHARES = 60


@pytest.mark.parametrize(
    ("on", "share", "of"),
    [
        ("cpu", 5, SHARES),
        ("cuda", 7, DEVICE_SHARES),
        *[pytest.param("cpu", k, 4, marks=[pytest.mark.slow, pytest.mark.full]) for k in range(4)],
        *[pytest.param("cuda", k, 4, marks=[pytest.mark.slow, pytest.mark.full]) for k in range(4)],
    ],
)
def test_the_first_calls_of_every_function(on: str, share: int, of: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONDONTWRITEBYTECODE")}
    env |= {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp().parent / "bytecode"), "OPENBLAS_NUM_THREADS": "1"}
    if on == "cuda":
        env["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "tests.threads.first_use", on, str(share), str(of)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr[-3000:]
    *wrong, count = done.stdout.splitlines()
    assert not wrong, "\n".join(wrong)
    assert int(count.split()[0]) > 10


# -- the members that the walk would meet by luck alone, each at its narrowest place
def at_once(work: Callable[[], Any], threads: int = 6) -> list[Any]:
    """What `work` gives to so many threads."""
    return together(*[work] * threads)


def test_a_plan_that_several_threads_learn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)
    x = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(30):
        doors.forget()
        assert [float(y) for y in at_once(lambda: x.sum() + 1)] == [7.0] * 6
        assert not doors.OFF


def test_one_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: two threads that first used the device made one each, and patched Triton twice."""
    for _ in range(10):
        monkeypatch.setattr(active, "_runtime", None)
        monkeypatch.setattr(active, "_choose", lambda: [object() for _ in range(1000)][-1])
        assert len({id(r) for r in at_once(active.runtime)}) == 1


def test_one_accumulator_of_a_leaf() -> None:
    for _ in range(20):
        leaf = tt.ones(2, requires_grad=True)
        found = at_once(lambda leaf=leaf: accumulator(leaf))
        assert len({id(a) for a in found}) == 1
        assert isinstance(found[0], AccumulateGrad)


def test_no_hook_of_a_leaf_is_lost() -> None:
    for _ in range(20):
        leaf, called = tt.ones(2, requires_grad=True), []
        at_once(lambda leaf=leaf, called=called: leaf.register_hook(lambda g: called.append(1)))
        (leaf * 2).sum().backward()
        assert len(called) == 6


def test_levels_have_numbers_of_their_own() -> None:
    numbers = [n for given in at_once(lambda: [Level("grad", True).number for _ in range(500)]) for n in given]
    assert len(set(numbers)) == len(numbers)


def test_no_two_threads_draw_the_same_numbers() -> None:
    offsets = [at for given in at_once(lambda: [tt.default_generator.draw(1)[1] for _ in range(500)]) for at in given]
    assert len(set(offsets)) == len(offsets)


def test_calls_that_are_bound_while_autocast_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: a call that another thread was binding, when autocast was first wanted, never cast."""
    bind = Ops.bind
    before = bind if not hasattr(autocast, "_bind") else autocast._bind
    monkeypatch.setattr(Ops, "bind", staticmethod(before))
    monkeypatch.setattr(ops, "__dict__", {})
    reached, go_on = threading.Event(), threading.Event()

    def slow(op: Any) -> Any:
        reached.set()
        go_on.wait(10)
        return before(op)

    monkeypatch.setattr(Ops, "bind", staticmethod(slow))
    thread = threading.Thread(target=lambda: ops.matmul)
    thread.start()
    assert reached.wait(10)
    monkeypatch.setattr(Ops, "bind", staticmethod(before))
    autocast.install()
    go_on.set()
    thread.join()
    x = tt.ones(2, 2)
    with tt.autocast("cpu"):
        assert ops.matmul(x, x).dtype == tt.bfloat16


def test_no_op_is_seen_before_its_file_has_been_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An op whose rule names what stands further down in its file is no op yet; a file that fails leaves none."""
    table = Table()
    (tmp_path / "two_ops.py").write_text("import sys\nsys.modules['_table'].enter('early')\nsys.modules['_table'].enter('late')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    between, go_on, failing = threading.Event(), threading.Event(), [True]

    class Entering:
        @staticmethod
        def enter(name: str) -> None:
            if name == "late":
                assert table["early"] is early, "its own file may ask"
                if failing:
                    raise MemoryError(failing.pop())
                between.set()
                go_on.wait(10)
            table[name] = early

    early: Any = type("Record", (), {"forms": (), "name": "early"})()
    monkeypatch.setitem(sys.modules, "_table", Entering)  # type: ignore[arg-type]
    import importlib

    table.loaded_from({"early": "two_ops", "late": "two_ops"}, importlib.import_module, lambda: importlib.import_module("two_ops"))
    with pytest.raises(tt.OutOfMemoryError, match=r"^early: no memory is left to load it"):
        table["early"]
    assert not dict.__contains__(table, "early")
    loading = threading.Thread(target=lambda: table["early"])
    loading.start()
    assert between.wait(10)
    seen: list[Any] = []
    asking = threading.Thread(target=lambda: seen.append((table["early"], dict.__contains__(table, "late"))))
    asking.start()
    asking.join(0.2)
    assert not seen, "the first op was handed out while its file was being run"
    go_on.set()
    asking.join(10)
    loading.join(10)
    assert seen == [(early, True)]
    sys.modules.pop("two_ops")


def test_a_replaced_operator_keeps_no_old_plan() -> None:
    x = tt.tensor([1.0, 2.0])
    assert at_once(lambda: (x + x).tolist()) == [[2.0, 4.0]] * 6
    np.testing.assert_array_equal((x - x).numpy(), [0.0, 0.0])
