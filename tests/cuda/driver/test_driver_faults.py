"""Faults of the driver at every call of a training step: the right error, books that agree with the driver's, and a next step that works."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub import build, control
from tests.stub.child import on_stub
from tritensor.cuda.runtime import active
from tritensor.ground.errors import LaunchError, OutOfMemoryError

INVALID_HANDLE = 400
FAULTS = {
    control.OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    INVALID_HANDLE: "CUDA_ERROR_INVALID_HANDLE",
    control.UNKNOWN: "CUDA_ERROR_UNKNOWN",
}
GONE = "Device cuda cannot be used again in this process"


def trained() -> Callable[[], Any]:
    """A training step of a small network, its data copied up anew; its value is the loss."""
    tt.manual_seed(0)
    net = tt.nn.Sequential(tt.nn.Linear(20, 32), tt.nn.ReLU(), tt.nn.Dropout(0.1), tt.nn.Linear(32, 5)).to("cuda")
    optimizer, criterion = tt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), tt.nn.CrossEntropyLoss()

    def step() -> Any:
        x = tt.tensor(np.ones((8, 20), np.float32), device="cuda")
        labels = tt.tensor(np.arange(8) % 5, device="cuda")
        optimizer.zero_grad()
        loss = criterion(net(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def cold() -> None:
    """Everything from the start of the driver on: a few kernels are loaded, the error record is made."""
    weights = tt.ones(20, 5, device="cuda", requires_grad=True)
    loss = tt.nn.functional.cross_entropy((tt.ones(8, 20, device="cuda") @ weights).relu(), tt.zeros(8, dtype=tt.int64, device="cuda"))
    loss.backward()
    float(loss)


def warm() -> Callable[[], None]:
    step = trained()

    def again() -> None:
        float(step())

    return again


def on_two_streams() -> Callable[[], None]:
    """Memory of one stream used on another, pinned memory, events."""
    step = trained()
    side = tt.cuda.Stream()

    def again() -> None:
        done = tt.cuda.Event()
        with tt.cuda.stream(side):
            loss = step()
            done.record()
        done.wait()
        twice = loss * 2
        up = tt.ones(1000).pin_memory().to("cuda", non_blocking=True)
        (up * twice).sum()
        tt.cuda.synchronize()
        side.synchronize()

    return again


def captured() -> Callable[[], None]:
    """A step captured into a graph and replayed."""
    step = trained()
    x = tt.ones(8, 20, device="cuda", requires_grad=True)
    step()

    def again() -> None:
        graph = tt.cuda.CUDAGraph()
        with tt.cuda.graph(graph):
            y = (x @ x.T).relu()
            y.sum().backward()
        graph.replay()
        tt.cuda.synchronize()
        float(y.sum())
        x.grad = None

    return again


def unheard() -> list[str]:
    """From now on collects the errors of finalizers, which have nobody to raise to."""
    found: list[str] = []
    sys.unraisablehook = lambda it: found.append(f"{it.object!r}: {it.exc_value}")
    return found


def check_books(when: str) -> None:
    """What the allocator believes to have from the driver is what the driver has given out."""
    gc.collect()
    made: Any = active.runtime()
    (allocator,) = made.allocators()
    assert allocator.reserved == sum(control.live_allocations().values()), when
    small, large = allocator.live, sum(size for size, *_ in allocator.large.values())
    assert 0 <= large <= small <= allocator.reserved, when


def check_error(error: Exception, status: int) -> None:
    """The class and the words of an error that comes from an injected status."""
    said = str(error)
    assert isinstance(error, OutOfMemoryError if status == control.OUT_OF_MEMORY else LaunchError), repr(error)
    if status == control.OUT_OF_MEMORY:
        assert "free tensors" in said or "Free" in said, said
    else:
        assert FAULTS[status] in said, said
    if "cuLaunchKernelEx" in said:
        assert re.search(r"\w+ (forward|backward): launch \w+: grid \(", said), said
    if "cuModule" in said:
        assert re.search(r"\w+ (forward|backward): loading kernel \w+ ", said), said
    if "cuMemcpy" in said:
        assert re.search(r"copy of \d+ bytes ", said), said
    assert GONE not in said, said


def fail_everywhere(run: Callable[[], None], status: int, check: Callable[[str], None] = check_books) -> tuple[int, int]:
    """Fail the 1st, 2nd, ... driver call of `run` until it makes no more; (calls, calls whose failure was got over)."""
    nth = survived = 0
    while True:
        nth += 1
        control.fail_at("*", nth, status)
        try:
            run()
            survived += 1
        except (LaunchError, OutOfMemoryError) as error:
            check_error(error, status)
        if control.faults_left():
            control.no_faults()
            return nth - 1, survived - 1
        check(f"after call {nth} failed")
        run()
        check(f"after call {nth} failed and the next run")


@pytest.mark.parametrize("status", FAULTS)
@on_stub()
def test_a_step_that_has_run_before(status: int) -> None:
    run = warm()
    run()
    held = tt.cuda.memory_allocated()
    calls, survived = fail_everywhere(run, status)
    assert calls > 20
    assert survived == 0
    gc.collect()
    assert tt.cuda.memory_allocated() == held


@pytest.mark.parametrize("status", FAULTS)
@on_stub()
def test_the_first_step_of_a_process(status: int) -> None:
    """Each time with a runtime that has just been made; what the one before it has allocated counts no more."""
    cold()
    lost = 0

    def run() -> None:
        nonlocal lost
        if starting[0]:
            active.use(None)
            gc.collect()
            lost = sum(control.live_allocations().values())
        starting[0] = not starting[0]
        cold()

    def check(when: str) -> None:
        gc.collect()
        made: Any = active._runtime
        reserved = sum(a.reserved for a in made.allocators()) if made is not None else 0
        assert reserved == sum(control.live_allocations().values()) - lost, when

    starting = [True]
    calls, survived = fail_everywhere(run, status, check)
    assert calls > 50
    assert survived == (1 if status == control.OUT_OF_MEMORY else 0)  # one allocation, which is tried again


@pytest.mark.parametrize("status", FAULTS)
@on_stub()
def test_streams_events_and_pinned_memory(status: int) -> None:
    run = on_two_streams()
    run()
    said = unheard()
    calls, _ = fail_everywhere(run, status)
    assert calls > 25
    assert all("__del__" in each and FAULTS[status] in each for each in said), said


@pytest.mark.parametrize("status", FAULTS)
@on_stub()
def test_a_capture(status: int) -> None:
    run = captured()
    run()
    said = unheard()
    calls, _ = fail_everywhere(run, status)
    assert calls > 15
    assert all("__del__" in each and FAULTS[status] in each for each in said), said
    assert not tt.cuda.is_current_stream_capturing()


@on_stub(STUB_MEMORY=64 << 20)
def test_a_full_device() -> None:
    kept = [tt.ones(2 << 20, device="cuda") for _ in range(3)]  # 8 MiB each
    kept += [tt.ones(2 << 20, device="cuda") for _ in range(5)]
    with pytest.raises(OutOfMemoryError) as caught:
        tt.ones(2 << 20, device="cuda")
    said = str(caught.value)
    for part in (
        "8.00 MiB (8388608 bytes) asked",
        "0 B of 64.00 MiB are free",
        "live tensors hold 64.00 MiB",
        "test_driver_faults.py",
        "smaller batch",
    ):
        assert part in said, said
    check_books("after the error")
    control.reset()
    del kept[:2]
    again = tt.ones(2 << 20, device="cuda")
    assert control.calls("cuMemAllocFromPoolAsync") == 0  # from the cache
    kept.clear()
    del again
    wide = tt.ones(12 << 20, device="cuda")  # 48 MiB: the cached pieces go back first
    assert control.calls("cuMemFreeAsync") > 0
    check_books("after the cache was given back")
    del wide


@on_stub()
def test_a_launch_that_asks_for_too_much_says_what_to_change() -> None:
    x = tt.ones(100, device="cuda")
    control.fail_at("cuLaunchKernelEx", 1, 701)
    with pytest.raises(LaunchError, match=r"launch .*CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.*fewer warps or smaller tiles"):
        x * x
    x * x


# a lost context
USES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "op": lambda had: had["x"] * had["x"],
    "new op": lambda had: had["x"].tan(),
    "large tensor": lambda had: tt.ones(1_234_567, device="cuda"),
    "upload": lambda had: tt.tensor([1.0, 2.0], device="cuda"),
    "item": lambda had: float(had["y"][0]),
    "print": lambda had: repr(had["y"]),
    "backward": lambda had: had["y"].sum().backward(),
    "synchronize": lambda had: tt.cuda.synchronize(),
    "stream": lambda had: tt.cuda.Stream(),
    "query": lambda had: had["stream"].query(),
    "wait": lambda had: had["event"].synchronize(),
    "record": lambda had: tt.cuda.Event().record(),
    "replay": lambda had: had["graph"].replay(),
    "free memory": lambda had: tt.cuda.mem_get_info(),
}


def possessions() -> dict[str, Any]:
    """One of everything that a process may hold when the context is lost."""
    x = tt.ones(100, device="cuda", requires_grad=True)
    had = {"x": x, "y": x * x, "stream": tt.cuda.Stream(), "event": tt.cuda.Event(), "graph": tt.cuda.CUDAGraph()}
    had["event"].record()
    with tt.cuda.stream(had["stream"]):
        had["w"] = x.detach() * 3  # memory that two streams use
    with tt.cuda.graph(had["graph"]):
        had["z"] = x.detach() * 2
    return had


@on_stub()
def test_every_use_of_a_lost_context_says_so() -> None:
    had = possessions()
    control.sticky(control.ILLEGAL_ADDRESS)
    for i, (name, use) in enumerate(USES.items()):
        with pytest.raises(LaunchError) as caught:
            use(had)
        said = str(caught.value)
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said, f"{name}: {said}"
        assert GONE in said, f"{name}: {said}"
        assert "TRITON_INTERPRET=1" in said, f"{name}: {said}"
        assert ("the GPU's context is lost since an earlier error" in said) == (i > 0), f"{name}: {said}"
    assert tt.cuda.is_available()
    assert tt.cuda.memory_allocated() > 0
    assert float(tt.ones(3).sum()) == 3  # the CPU goes on
    had.clear()
    gc.collect()  # what goes now raises nowhere: the server would have noticed


@pytest.mark.parametrize("status", [control.ILLEGAL_ADDRESS, control.LAUNCH_FAILED])
@on_stub()
def test_a_context_lost_at_any_call(status: int) -> None:
    run = warm()
    for _ in range(3):
        run()
    with control.counted() as calls:
        run()
    for nth in range(1, sum(calls.values()) + 1):
        control.fail_at("*", nth, status, sticky=True)
        for _ in range(2):
            with pytest.raises(LaunchError, match=GONE):
                run()
        control.no_faults()
        active.runtime().driver.lost = ""  # type: ignore[attr-defined]
        run()
        check_books(f"lost at call {nth}")


def test_a_process_that_lost_its_context_ends_in_peace() -> None:
    code = """
import tritensor as tt
from tests.cuda.driver.test_driver_faults import possessions
from tests.stub import control
had = possessions()
pinned = tt.ones(100).pin_memory()
control.sticky(control.ILLEGAL_ADDRESS)
try:
    had["x"] * 2
except RuntimeError as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], env=build.environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "LaunchError\n", "")
