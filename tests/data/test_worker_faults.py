"""Faults in worker processes: told in the loader's by name, at once, leaving no process and no memory behind."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
import tritensor.multiprocessing as mp
from tests.data.test_workers import left, loader
from tests.data.worker_datasets import Faulty, Nested, OfAGraph, Ragged, Rows, Slow, Unread, fail_to_begin, little_room, same
from tests.multiprocessing.named_memory import left_behind, names
from tritensor.data import DataLoader
from tritensor.data.workers.channel import Channel, socket_pair
from tritensor.data.workers.failures import describe_exit

pytestmark = pytest.mark.filterwarnings("ignore:.*processors for this process", "ignore:.*fork:DeprecationWarning")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("way", "error", "name"),
    [
        ("KeyError", KeyError, "KeyError"),
        ("ValueError", ValueError, "ValueError"),
        ("odd", RuntimeError, "OddError"),
        ("local", LookupError, "LookupError"),
        ("StopIteration", RuntimeError, "StopIteration"),
    ],
)
def test_an_error_of_a_dataset_is_raised_here_and_the_loop_may_go_on(way: str, error: type[Exception], name: str) -> None:
    batches, told, kind, found = iter(loader(Faulty(way), batch_size=4)), "", None, []
    while True:
        try:
            found.append(next(batches)[1].tolist())
        except StopIteration:
            break
        except Exception as raised:
            told, kind = str(raised), type(raised)
    assert found == [list(range(k, k + 4)) for k in (0, 8, 12, 16, 20)]
    assert kind is error
    assert told.startswith(f"Caught {name} in DataLoader worker process 1, which read the samples [4, 5, 6, 7].\nOriginal Traceback")
    assert re.search(r"worker_datasets\.py\", line \d+, in fail", told)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("SIGKILL", r"was killed by signal SIGKILL; the kernel does that .* fewer workers"),
        ("SIGTERM", r"was killed by signal SIGTERM"),
        ("exit", r"ended by itself with exit code 3"),
        ("leave", r"ended by itself with exit code 0"),
    ],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_worker_that_ends_is_told_at_once(way: str, said: str, persistent: bool) -> None:
    made = loader(Faulty(way, 8), batch_size=4, persistent_workers=persistent)
    batches, began = iter(made), time.monotonic()
    with pytest.raises(
        RuntimeError, match=rf"^DataLoader worker 0 \(pid \d+\) {said}.*; it was making batch 2 of the samples \[8, 9, 10, 11\]$"
    ):
        list(batches)
    assert time.monotonic() - began < 30, "it would have been killed a minute later"
    with pytest.raises(RuntimeError, match=r"^DataLoader worker 0"):
        next(batches)
    assert not left()
    made.dataset.way = "ValueError"
    with pytest.raises(ValueError, match="the fifth"):
        list(made)


@pytest.mark.parametrize(
    ("code", "said"),
    [(-signal.SIGBUS, "SIGBUS; .*/dev/shm"), (-signal.SIGSEGV, "SIGSEGV; .*faulthandler"), (-63, "number 63$"), (None, "still runs")],
)
def test_how_a_process_ended(code: int | None, said: str) -> None:
    assert re.search(said, describe_exit(code))


def test_a_worker_that_is_killed_while_it_waits() -> None:
    made = loader(Rows(8), batch_size=4, persistent_workers=True)
    list(made)
    os.kill(left()[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="was killed by signal SIGKILL"):
        list(made)
    assert [b[1].tolist() for b in made] == [[0, 1, 2, 3], [4, 5, 6, 7]], "new workers"


def test_a_worker_that_hangs_is_told_after_the_timeout() -> None:
    batches, began = iter(loader(Faulty("hang"), batch_size=4, timeout=0.7)), time.monotonic()
    said = r"^DataLoader timed out after 0\.7 seconds: worker 1 \(pid \d+\) still runs, it was making batch 1 of the samples \[4, 5, 6, 7\]; give a longer.*"
    said += r"It is at \(innermost first\):\n  File .*worker_datasets\.py\", line \d+ in fail\n"
    with pytest.raises(RuntimeError, match=f"(?s){said}"):
        list(batches)
    assert 0.6 < time.monotonic() - began < 30, "a sample takes a minute"
    assert not left()


def test_a_forked_child_of_a_worker_does_not_hide_its_end(tmp_path: Path) -> None:
    told = tmp_path / "told"
    try:
        with pytest.raises(RuntimeError, match="SIGKILL"):
            list(loader(_Forking(told), batch_size=4, timeout=60))
    finally:
        told.touch()


class _Forking(Faulty):
    """Before it is killed the worker forks a child, which holds what the worker held until the file `told` is there."""

    def __init__(self, told: Path) -> None:
        super().__init__("SIGKILL")
        self.told = told

    def __getitem__(self, i: int) -> Any:
        if i == 4 and os.fork() == 0:
            end = time.monotonic() + 90
            while not self.told.exists() and time.monotonic() < end:
                time.sleep(0.05)
            os._exit(0)
        return super().__getitem__(i)


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_no_room_for_a_batch_is_told_with_numbers(strategy: str) -> None:
    mp.set_sharing_strategy(strategy)
    try:
        with pytest.raises(
            MemoryError, match=r"(?s)Caught OutOfMemoryError in .*shared memory: no room for [\d,]+ bytes: File too large; "
        ) as e:
            list(loader(Rows(), batch_size=4, worker_init_fn=little_room))
    finally:
        mp.set_sharing_strategy("file_descriptor")
    assert ("/dev/shm has" in str(e.value)) == (strategy == "file_system")
    assert "bytes available" in str(e.value)
    del e
    assert not left()


def test_what_cannot_start() -> None:
    with pytest.raises(
        LookupError, match=r"(?s)Caught LookupError in DataLoader worker process 0, in worker_init_fn\..*worker 0 finds no folder"
    ):
        list(loader(Rows(), worker_init_fn=fail_to_begin))
    with pytest.raises(OSError, match=r"(?s)worker process 0, which could not read the dataset that it was given.*the disk is gone"):
        list(loader(Unread(), method="spawn"))
    with pytest.raises(ValueError, match="'thread' is no way to start processes here"):
        loader(Rows(), method="thread")
    with pytest.raises(TypeError, match="multiprocessing_context is a int; give 'spawn'"):
        DataLoader(Rows(), num_workers=1, multiprocessing_context=3)
    assert not left()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"collate_fn": lambda x: x}, r"collate_fn: .*lambda"),
        ({"worker_init_fn": lambda _: None}, r"worker_init_fn: .*lambda"),
        ({"dataset": "lock"}, r"dataset\.lock: TypeError: cannot pickle '_thread\.lock'"),
    ],
)
def test_what_cannot_be_pickled_is_named(options: dict[str, Any], said: str) -> None:
    import pickle
    import threading

    data = Rows()
    if options.pop("dataset", ""):
        data.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(pickle.PicklingError, match=f"^DataLoader: workers cannot be given {said}.*or use multiprocessing_context='fork'"):
        iter(loader(data, method="spawn", **options))
    assert not left()
    assert len(list(loader(data, **options))) == 24, "a fork needs no pickle"


def test_samples_that_make_no_batch_are_named() -> None:
    said = r"default_collate: in \[{}\]\[0\]: sample 0 is \(3,\) of float32, sample 3 is \(4,\) of float32: .* \(sample 0 is dataset\[4\], sample 3 is dataset\[7\]\)"
    for workers in (0, 1):
        with pytest.raises(tt.ShapeError, match=said.format("'x'")):
            list(loader(Ragged(), workers, batch_size=4))
    with pytest.raises(tt.GradError, match=r"(?s)a batch holds a tensor of shape \(4, 3\).*return x\.detach\(\)"):
        list(loader(OfAGraph(), batch_size=4))
    with pytest.raises(tt.DeviceError, match=r"(?s)a batch holds a tensor of shape \(2,\) on cuda:0; workers hand over memory of the CPU"):
        list(loader(Rows(), collate_fn=_on_gpu))


def test_loaders_inside_of_workers() -> None:
    assert [x.item() for x in loader(Nested(0), 1)] == [3, 6]
    with pytest.raises(RuntimeError, match=r"(?s)DataLoader worker 0 is a daemonic process.*takes num_workers=0"):
        list(loader(Nested(1), 1))


def _on_gpu(samples: Any) -> Any:
    return tt.ones(2, device="cuda")


def test_a_batch_that_cannot_be_pickled() -> None:
    with pytest.raises((TypeError, AttributeError), match=r"(?s)in DataLoader worker process 0.*pickle"):
        list(loader(Rows(), collate_fn=_unpicklable))
    assert not left()


def _unpicklable(samples: Any) -> Any:
    return (x for x in samples)


# -- the program ends

PROGRAM = """
import os, sys, time
import tritensor.multiprocessing as mp
from tests.data.worker_datasets import Slow
from tritensor.data import DataLoader
from tritensor.data.workers.channel import Channel, socket_pair
from tritensor.data.workers.failures import describe_exit

if __name__ == "__main__":
    mp.set_sharing_strategy(sys.argv[2])
    batches = iter(DataLoader(Slow(1000), batch_size=1, num_workers=2, multiprocessing_context=sys.argv[1]))
    next(batches)
    print(*[w.process.pid for w in batches._pool.workers], flush=True)
    for batch in batches:
        pass
"""


@contextlib.contextmanager
def running(method: str, strategy: str, tmp_path: Path) -> Iterator[tuple[Any, list[int]]]:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "program.py"), method, strategy]
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    try:
        yield child, [int(pid) for pid in child.stdout.readline().split()]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()  # type: ignore[union-attr]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    ("method", "number", "strategy"),
    [("fork", signal.SIGINT, "file_system"), ("fork", signal.SIGTERM, "file_descriptor"), ("spawn", signal.SIGKILL, "file_system")],
)
def test_the_end_of_the_program_is_that_of_its_workers(method: str, number: int, strategy: str, tmp_path: Path) -> None:
    before = names()
    with running(method, strategy, tmp_path) as (child, pids):
        assert len(pids) == 2
        if number == signal.SIGINT:
            os.killpg(child.pid, number)  # as a terminal does
        else:
            os.kill(child.pid, number)
        child.wait(60)
        end = time.monotonic() + 30
        while not all(map(gone, pids)) and time.monotonic() < end:
            time.sleep(0.02)
        assert all(map(gone, pids))
        said = child.stderr.read()
        assert said.count("KeyboardInterrupt") == (number == signal.SIGINT), said
    assert not left_behind(before)


def test_a_program_without_a_guard_is_told_and_ends(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    head = "import tritensor as tt\nfrom tritensor.data import DataLoader\nclass Mine(list): pass\n"
    program.write_text(head + "print([b.tolist() for b in DataLoader(Mine([1, 2]), num_workers=1)])\n")
    done = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"worker 0 \(pid \d+\) ended .* it imports train\.py, which has no `if __name__ == '__main__':`.*num_workers=0", last)
    assert "a worker process imports this program, which starts worker processes while it is imported" in done.stderr
    program.write_text(head + "print([b.tolist() for b in DataLoader([1, 2], num_workers=1)])\n")
    done = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[[1], [2]]\n", ""), "nothing of the program is needed in the worker"


def test_a_slow_start_is_no_end() -> None:
    assert [b.tolist() for b in loader(Slow(4), batch_size=2, timeout=60)] == [[0, 1], [2, 3]]
    assert same(3) == 3


def _in_a_fork(asked: Any) -> str:
    """What `asked()` says in a forked copy of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            told = str(asked())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    with open(read) as said:
        found = said.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"pin_memory": True}], ids=["", "persistent", "pinned"])
def test_a_fork_of_the_program_leaves_the_iteration_to_it(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.cuda, "is_available", lambda: "pin_memory" in options)
    monkeypatch.setattr(tt.Tensor, "pin_memory", lambda x: x)
    made = loader(Rows(), batch_size=4, **options)
    batches = iter(made)
    assert next(batches)[1].tolist() == [0, 1, 2, 3]
    assert re.fullmatch(
        rf"RuntimeError: DataLoader: this process is a fork of process {os.getpid()}, .*; iterate over the loader anew here",
        _in_a_fork(lambda: next(batches)),
    )
    assert _in_a_fork(lambda: [batch[1].tolist()[0] for batch in made]) == "[0, 4, 8, 12, 16, 20]"
    assert [batch[1].tolist()[0] for batch in batches] == [4, 8, 12, 16, 20]


def test_a_batch_that_a_fork_of_the_program_holds_is_not_written_to() -> None:
    batches = iter(loader(Rows(200), batch_size=4))
    held = next(batches)[0]
    (mine, theirs), (answer, told) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.read(mine, 1)
        os.write(told, str(held[:, 0].tolist()).encode())
        os._exit(0)
    del held
    assert len(list(batches)) == 49
    os.write(theirs, b"x")
    assert os.read(answer, 100) == b"[0.0, 1.0, 2.0, 3.0]"
    os.waitpid(child, 0)
    for descriptor in (mine, theirs, answer, told):
        os.close(descriptor)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_too_few_file_descriptors_are_told_and_none_stays(method: str) -> None:
    held, here = resource.getrlimit(resource.RLIMIT_NOFILE), left()
    taken = [os.dup(0) for _ in range(3)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 18, held[1]))
        with pytest.raises(MemoryError, match=r"DataLoader: no file descriptor is left to (start worker \d of 8|receive) .*ulimit -n"):
            list(loader(Rows(), 8, method))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, held)
        for descriptor in taken:
            os.close(descriptor)
    assert left() == here


def test_a_batch_of_more_memories_than_descriptors_is_told() -> None:
    held, here = resource.getrlimit(resource.RLIMIT_NOFILE), left()
    batches = iter(loader(Rows(100), 1, batch_size=40, collate_fn=same))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0) + 10, held[1]))
        with pytest.raises(
            MemoryError, match=r"no file descriptor is left to receive what a worker sends \(.*limit \d+\); raise the limit"
        ):
            list(batches)
        with pytest.raises(RuntimeError, match="no file descriptor is left"):
            next(batches)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, held)
    del batches
    assert left() == here


def test_a_worker_waits_while_too_many_descriptors_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, send = [errno.ETOOMANYREFS] * 3, socket.send_fds

    def sparing(*args: Any) -> int:
        if refused:
            raise OSError(refused.pop(), "too many references")
        return send(*args)

    monkeypatch.setattr(socket, "send_fds", sparing)
    one, other = socket_pair()
    worker, program = Channel(one, blocking=True), Channel(other, blocking=False)
    worker.send(b"message", [os.dup(0)])
    message, descriptors = program.receive()
    assert bytes(message) == b"message"
    assert len(descriptors) == 1
    os.close(descriptors[0])
    worker.close()
    program.close()


def test_a_dataset_without_workers_does_not_end_the_loop_by_StopIteration() -> None:
    with pytest.raises(RuntimeError, match=r"Caught StopIteration, .* for \[4, 5, 6, 7\]"):
        list(DataLoader(Faulty("StopIteration"), batch_size=4))
