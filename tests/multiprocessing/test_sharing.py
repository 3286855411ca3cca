"""Tensors in several processes: one memory, whatever they travel by; what is refused; nothing left behind."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
import tritensor.multiprocessing as mp
from tests.multiprocessing import sharing_targets as targets
from tests.multiprocessing.named_memory import left_behind, names
from tritensor.tensor import shared_memory, sharing

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
FORK: Any = mp.get_context("fork")


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request: pytest.FixtureRequest) -> Any:
    before, there = mp.get_sharing_strategy(), names()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()
    assert not left_behind(there)


def named() -> tt.Tensor:
    x = tt.ones(4).as_subclass(targets.Named)
    x.label = "four"  # type: ignore[attr-defined]
    return x


SENT: dict[str, Any] = {
    "float32": lambda: tt.ones(3, 4),
    "bfloat16": lambda: tt.ones(3, dtype=tt.bfloat16),
    "float8": lambda: tt.ones(3).to(tt.float8_e4m3fn),
    "bool": lambda: tt.ones(3, dtype=tt.bool),
    "complex": lambda: tt.ones(3, dtype=tt.complex64).real,
    "transposed": lambda: tt.ones(3, 4).T,
    "in steps": lambda: tt.ones(9)[1::3],
    "backwards": lambda: tt.ones(9)[::-1],
    "expanded": lambda: tt.ones(1).expand(5)[:1],
    "number": lambda: tt.tensor(1.0),
    "leaf": lambda: tt.ones(3, requires_grad=True),
    "parameter": lambda: tt.nn.Parameter(tt.ones(2, 2)),
    "buffer": lambda: tt.nn.Buffer(tt.ones(2)),
    "subclass": named,
    "empty": lambda: tt.ones(0, 3),
}


@pytest.mark.parametrize("ready", [False, True])
def test_what_another_process_writes_is_seen(strategy: str, ready: bool) -> None:
    found, back = FORK.Queue(), FORK.Queue()
    child = FORK.Process(target=targets.write, args=(found, back))
    child.start()
    for name, make in SENT.items():
        x = make()
        if ready:
            assert x.share_memory_() is x
        found.put(x)
        before, *told, shared = back.get(timeout=20)
        wanted = (str(x.dtype), tuple(x.shape), x.stride(), x.requires_grad, type(x).__name__, getattr(x, "label", None))
        assert tuple(told) == wanted, name
        assert before == x.numel()
        if x.numel():
            assert shared
            assert x.is_shared()
            assert x.detach().float().eq(1 if x.dtype == tt.bool else 2).all(), name
    found.put(None)
    child.join(20)
    assert child.exitcode == 0


def test_views_are_views_of_one_memory_there(strategy: str) -> None:
    mine, theirs = FORK.Pipe()
    child = FORK.Process(target=targets.give, args=(theirs,))
    child.start()
    x, part = mine.recv()
    part[0, 0] = -5
    assert x[5] == -5
    assert x.untyped_storage() == part.untyped_storage()
    x[0] = 9
    mine.send(0)
    assert mine.recv() == 9, "read by its maker"
    mine.send(0)
    child.join(20)
    assert x[4] == 4, "the memory outlives its maker"


def test_sharing_moves_every_tensor_of_the_memory(strategy: str) -> None:
    x = tt.arange(12.0).reshape(3, 4)
    row, turned, apart, plain = x[1], x.T, x.detach(), x.numpy()
    memory = x.untyped_storage()
    w = x.view(12)[3:6].requires_grad_()
    assert not any(t.is_shared() for t in (x, row, turned, apart, w, memory))
    address = x.data_ptr()
    row.share_memory_()
    assert all(t.is_shared() for t in (x, row, turned, apart, w, memory))
    assert x.data_ptr() != address
    assert (row.data_ptr(), turned.data_ptr(), memory.data_ptr()) == (x.data_ptr() + 16, x.data_ptr(), x.data_ptr())
    row[0] = 100
    assert (x[1, 0].item(), turned[0, 1].item(), apart[1, 0].item(), memory.nbytes()) == (100, 100, 100, 48)
    assert plain[1, 0] == 4, "numpy's array keeps the memory of before"
    again = x.data_ptr()
    assert x.share_memory_().data_ptr() == again
    assert tt.ones(3).untyped_storage().share_memory_().is_shared()
    assert tt.ones(0).share_memory_().numel() == 0
    assert not x.clone().is_shared()
    assert not copy.deepcopy(x).is_shared()
    assert not pickle.loads(pickle.dumps(x)).is_shared()


def test_a_tensor_that_is_alone_is_moved_without_looking_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    find = sharing._other_holders
    monkeypatch.setattr(sharing, "_other_holders", lambda *a: looked.append(a) or find(*a))
    tt.ones(5).share_memory_()
    tt.nn.Linear(3, 3).share_memory()
    queue = FORK.SimpleQueue()
    queue.put(tt.ones(5))
    queue.get()
    assert not looked, "that takes milliseconds"
    x = tt.ones(5)
    y = x[1:]
    x.share_memory_()
    assert y.is_shared()
    assert len(looked) == 1


def test_gradients_and_writes_go_on_after_sharing() -> None:
    w = tt.ones(4, requires_grad=True)
    y = (w * w).sum()
    w.share_memory_()
    y.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0] * 4
    x = tt.ones(4, requires_grad=True) * 1
    z = x.exp()
    z.share_memory_()
    z[0] = 5.0
    assert z.tolist()[0] == 5
    kept = tt.ones(4, requires_grad=True).exp()
    kept.detach().share_memory_().mul_(2)
    with pytest.raises(tt.GradError, match="exp"):
        kept.sum().backward()


def test_a_model_is_trained_by_several_processes(strategy: str) -> None:
    tt.manual_seed(0)
    model = tt.nn.Sequential(tt.nn.Linear(3, 8), tt.nn.BatchNorm1d(8), tt.nn.Linear(8, 1))
    before = {name: p.clone() for name, p in model.named_parameters() if "weight" in name}  # a bias under a batch norm stays
    assert model.share_memory() is model
    assert all(t.is_shared() for t in model.state_dict().values())
    mp.start_processes(targets.train, (model, 30), nprocs=2, start_method="fork")
    assert not any(tt.equal(model.get_parameter(name), b) for name, b in before.items())
    x = tt.randn(50, 3)
    assert (model(x) - x.sum(1, keepdim=True)).pow(2).mean() < 2.5


def test_pools_and_simple_queues() -> None:
    x = tt.zeros(6)
    with FORK.Pool(1) as pool:
        doubled = pool.apply(targets.add, (x,))
        assert (x.tolist(), doubled.tolist(), doubled.is_shared()) == ([1.0] * 6, [2.0] * 6, True)
        assert [y.tolist() for y in pool.map(targets.echo, [x[:2], x[2:3]])] == [[1.0, 1.0], [1.0]]
    queue = FORK.SimpleQueue()
    queue.put({"x": x, "model": tt.nn.Linear(2, 2)})
    back = queue.get()
    assert back["x"].data_ptr() == x.data_ptr(), "what comes back is the same memory"
    assert back["model"].weight.is_shared()


def test_many_are_sent_and_no_descriptor_stays() -> None:
    queue = FORK.SimpleQueue()
    queue.put(tt.zeros(1))
    queue.get()
    before = len(os.listdir("/proc/self/fd"))
    for k in range(50):
        queue.put(tt.full((3,), float(k)))
        assert queue.get().tolist() == [k] * 3
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_what_cannot_be_sent() -> None:
    queue = FORK.SimpleQueue()
    w = tt.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"^multiprocessing: a Tensor of shape \(2,\) that an op computed, and that requires grad.*x\.detach\(\)"
    ):
        queue.put(w * 2)
    with pytest.raises(tt.DeviceError, match=r"^multiprocessing: a Tensor of shape \(3,\) on cuda:0 cannot be sent.*x\.cpu\(\)"):
        queue.put(tt.ones(3, device="cuda"))
    with pytest.raises(tt.TransformError, match="share_memory_: inside vmap"):
        tt.vmap(lambda x: x.share_memory_())(tt.ones(2, 2))
    with pytest.raises(ValueError, match="set_sharing_strategy: 'magic' is no strategy; give 'file_descriptor' or 'file_system'"):
        mp.set_sharing_strategy("magic")


def test_a_sender_that_has_ended_is_told() -> None:
    mine, theirs = FORK.Pipe()
    child = FORK.Process(target=targets.leave, args=(theirs,))
    child.start()
    child.join(20)
    with pytest.raises(
        RuntimeError, match=rf"a tensor of 40 bytes has lost its memory before it was received: process {child.pid}, which sent it"
    ):
        mine.recv()


def test_no_room_is_told_before_anything_moves(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.ones(1000)
    address, files = x.data_ptr(), len(os.listdir("/proc/self/fd"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shared_memory.os, "posix_fallocate", full)
        with pytest.raises(
            MemoryError, match=r"^shared memory: no room for 4,000 bytes: No space left on device; .*bytes available; use fewer"
        ) as e:
            x.share_memory_()
        assert ("--shm-size" in str(e.value)) == (strategy == "file_system")
        patch.setattr(shared_memory.os, "memfd_create", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        patch.setattr(shared_memory.os, "open", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        with pytest.raises(
            MemoryError, match=r"no file descriptor is left for 4,000 bytes \(\d+ open, limit \d+\).*ulimit -n.*'file_system'"
        ):
            x.share_memory_()
    assert (x.data_ptr(), x.is_shared(), len(os.listdir("/proc/self/fd"))) == (address, False, files)
    x.share_memory_()
    assert x.sum() == 1000


def test_the_names_of_python_are_here() -> None:
    import multiprocessing

    assert set(mp.__all__) >= set(multiprocessing.__all__)
    assert all(getattr(mp, name) is getattr(multiprocessing, name) for name in multiprocessing.__all__ if name != "set_start_method")
    assert mp.connection.wait is multiprocessing.connection.wait  # type: ignore[attr-defined]
    assert mp.pool.Pool is multiprocessing.pool.Pool
    assert (mp.get_all_sharing_strategies(), mp.get_sharing_strategy()) == ({"file_descriptor", "file_system"}, "file_descriptor")
    with pytest.raises(AttributeError, match="nor has Python's multiprocessing"):
        mp.magic  # noqa: B018


# -- spawn


def test_processes_of_one_function() -> None:
    x = tt.zeros(2).share_memory_()
    assert mp.spawn(targets.mark, (x,), nprocs=2) is None
    assert x.tolist() == [1.0, 2.0]
    context = mp.start_processes(targets.mark, (x,), nprocs=1, join=False, start_method="fork")
    assert context is not None
    assert context.pids() == [p.pid for p in context.processes]
    while not context.join(timeout=5):
        pass
    assert context.join()
    with pytest.warns(FutureWarning, match="start_method='fork' is not heeded"), pytest.raises(mp.ProcessExitedException):
        mp.spawn(targets.fail, ("leave",), nprocs=2, start_method="fork")


@pytest.mark.parametrize(
    ("way", "error", "said"),
    [
        ("raise", mp.ProcessRaisedException, r"(?s)-- Process 1 terminated with the following error:\nTraceback .*ValueError: the second"),
        ("9", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
        ("leave", mp.ProcessExitedException, "process 1 terminated with exit code 4"),
    ],
)
def test_one_that_fails_ends_the_others(way: str, error: type[mp.ProcessException], said: str) -> None:
    began = time.monotonic()
    with pytest.raises(error, match=said) as e:
        mp.start_processes(targets.fail, (way,), nprocs=3, start_method="fork")
    assert time.monotonic() - began < 60
    assert e.value.error_index == 1
    again = pickle.loads(pickle.dumps(e.value))
    assert (type(again), str(again), again.error_pid) == (error, str(e.value), e.value.error_pid)
    if isinstance(again, mp.ProcessExitedException):
        assert (again.exit_code, again.signal_name) == ((-9, "SIGKILL") if way == "9" else (4, None))
    with pytest.raises(ProcessLookupError):
        os.kill(e.value.error_pid, 0)


def test_the_end_of_the_parent_is_that_of_its_processes(tmp_path: Any) -> None:
    def parent() -> None:
        context = mp.start_processes(targets.fail, ("raise",), nprocs=1, join=False, start_method="fork")
        (tmp_path / "pid").write_text(str(context.pids()[0]))  # type: ignore[union-attr]
        time.sleep(30)

    first = FORK.Process(target=parent)
    first.start()
    end = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    pid = int((tmp_path / "pid").read_text())
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":
            break
        time.sleep(0.02)
    else:
        raise AssertionError("it lives")
