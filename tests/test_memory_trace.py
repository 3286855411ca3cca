"""tt.debug.memory_trace and memory_report: who takes memory, what was there at the peak, what is left and who holds it; PyTorch's history."""

from __future__ import annotations

import gc
import pickle
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.cuda.memory.report import size
from tritensor.cuda.runtime.active import runtime
from tritensor.debug.allocations import MemoryTrace, Use
from tritensor.ground.errors import ArgumentError, OutOfMemoryError

KB = 1 << 10


def uses(trace: MemoryTrace) -> dict[tuple[str, str], Use]:
    return {(u.site.module, u.site.op): u for u in trace.uses}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_by_module_op_and_line(device: str) -> None:
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU()).to(device)
    x = tt.ones(16, 64).to(device)
    net(x)
    with tt.debug.memory_trace() as trace:
        for _ in range(3):
            y = net(x)
        z = y.exp()
    found = uses(trace)
    if device == "cpu":
        named = [("Sequential.0", "linear"), ("Sequential.1", "relu")]
    else:  # the two modules are one kernel, of the container's
        named = [("Sequential", "linear_activation_by_result")]
    assert set(found) == {*named, ("", "exp")}
    linear = found[named[0]]
    assert (linear.made, linear.times, linear.device) == (3 * 2 * KB, 3, "cpu" if device == "cpu" else "cuda:0")
    assert re.fullmatch(r"tests/test_memory_trace\.py:\d+", linear.site.line)
    assert found["", "exp"].at_end == 2 * KB
    del y, z
    assert uses(trace)["", "exp"].at_end == 0
    assert f"{named[0][0]}  {named[0][1]}  tests/test_memory_trace.py" in repr(trace)


def test_what_was_there_at_the_peak() -> None:
    x = tt.ones(1024)
    with tt.debug.memory_trace() as trace:
        a = x.exp()
        b = a.sin()
        del a
        c = b.cos()
        d = c.tan()
        del b, c
        e = d.abs()
    found = {u.site.op: (u.at_peak // KB, u.at_end // KB) for u in trace.uses}
    assert found == {"exp": (0, 0), "sin": (4, 0), "cos": (4, 0), "tan": (4, 4), "abs": (0, 4)}
    assert trace.uses[0].at_peak == 4 * KB
    assert e.numel() == 1024


def test_views_and_writes_in_place_make_nothing() -> None:
    x = tt.ones(1024)
    with tt.debug.memory_trace() as trace:
        x.reshape(32, 32).t()[0].unsqueeze(0)
        x.mul_(2.0)
        x += x
        x.contiguous()
    assert trace.uses == []
    assert repr(trace) == "no memory was asked for by ops"
    assert trace.leaks() == "nothing that was made in the block is left"


def test_gradients_and_their_modules() -> None:
    net = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 8))
    with tt.debug.memory_trace() as trace:
        net(tt.ones(16, 64)).sum().backward()
    found = uses(trace)
    assert found["Sequential.0", "AddmmBackward0"].at_end >= 4 * 64 * 32
    assert found["Sequential.1", "AddmmBackward0"].made >= 4 * (32 * 8 + 16 * 32)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_leak_and_who_holds_it(device: str) -> None:
    kept: list[Any] = []
    x = tt.ones(4096).to(device)

    def step() -> None:
        kept.append(x.exp())
        x.sin()

    step()
    with tt.debug.memory_trace() as trace:
        for _ in range(3):
            step()
    said = trace.leaks(1)
    assert said.startswith("48.00 KiB that were made in the block are left:")
    assert re.search(r"48\.00 KiB  exp  tests/test_memory_trace\.py:\d+", said)
    assert "kept" in said
    assert "allocations.py" not in said
    assert len(trace.alive()) == 3
    kept.clear()
    gc.collect()
    assert trace.alive() == []


def test_the_whole_is_counted_as_well() -> None:
    x = tt.ones(1 << 18)
    with tt.debug.memory_trace() as trace:
        y = x.exp()
        y.sin()
        scratch = np.ones(1 << 20)
        x.cos()
        del scratch
    assert trace.peak["cpu"] >= 8 << 20


def test_nothing_stands_in_the_way_afterwards() -> None:
    before = nn.Module.__call__, tt.ops.exp
    with tt.debug.memory_trace():
        tt.ones(3).exp()
        assert nn.Module.__call__ is not before[0]
    assert (nn.Module.__call__, tt.ops.exp) == before


# the report
def test_tensors_by_what_they_are_for() -> None:
    net = nn.Linear(123, 77)
    opt = tt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss = net(tt.ones(2, 123)).exp().sum()
    loss.backward(retain_graph=True)
    opt.step()
    said = tt.debug.memory_report()
    parts = re.split(r"^ +[\d.]+ \w+  (?=[a-z])", said, flags=re.M)
    by_role = {p.split("\n", 1)[0]: p for p in parts[1:]}
    for role in ("parameters", "gradients", "state of optimizers"):
        assert "float32[77, 123]" in by_role[role], role
    assert "float32[2, 77]" in by_role["saved for backward"]
    assert "tensors on cpu" in said
    assert "the C library has handed out" in said
    assert "tracemalloc" in said


def test_the_device_stands_in_it() -> None:
    x = tt.ones(1000, device="cuda")
    said = tt.debug.memory_report()
    assert "tensors on cuda:0" in said
    assert "memory of cuda:0" in said
    assert "test_memory_trace.py" in said
    assert x.is_cuda


def test_lines_of_numpys_arrays_where_python_traces() -> None:
    tracemalloc.start()
    try:
        kept = np.ones(1 << 18)
        said = tt.debug.memory_report()
    finally:
        tracemalloc.stop()
    assert re.search(r"2\.\d+ MiB in \d+ arrays at \S*numeric\.py:\d+|test_memory_trace\.py", said)
    assert kept.size


# out of memory
def test_a_full_device_says_who_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    ledger = runtime().allocator(0)
    monkeypatch.setattr(ledger, "_total", ledger.live + (1 << 20))
    kept = tt.zeros(150_000, device="cuda")
    with tt.debug.memory_trace() as trace, pytest.raises(OutOfMemoryError) as raised:
        kept * 2
    said = str(raised.value)
    assert "600000 bytes) asked" in said
    assert f"438.06 KiB of {size(ledger._total)} are free on the device" in said
    assert f"live tensors hold {size(ledger.live)}" in said
    assert re.search(r"585\.94 KiB at \S*test_memory_trace\.py:\d+ in test_a_full_device_says_who_has_it", said)
    assert trace.uses == []
    del kept


# PyTorch's history
def test_a_history(tmp_path: Path) -> None:
    memory = tt.cuda.memory
    x = tt.ones(256, device="cuda")
    memory._record_memory_history(max_entries=1000)
    y = x * 2
    z = y.exp()
    del y
    memory._dump_snapshot(str(tmp_path / "s.pickle"))
    memory._record_memory_history(enabled=None)
    snapshot = pickle.loads((tmp_path / "s.pickle").read_bytes())
    history = [(e["action"], e["size"], e["frames"][1]["name"]) for e in snapshot["device_traces"][0]]
    assert history == [("alloc", 1024, "mul"), ("alloc", 1024, "exp"), ("free_completed", 1024, "mul")]
    assert all(e["frames"][0]["filename"].endswith("test_memory_trace.py") for e in snapshot["device_traces"][0])
    assert snapshot["device_traces"][0][0]["addr"] == snapshot["device_traces"][0][2]["addr"]
    live = [b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == z.data_ptr()]
    assert [b["size"] for b in live] == [1024]
    with pytest.raises(ArgumentError, match="enabled='some'"):
        memory._record_memory_history("some")
    assert memory._snapshot()["device_traces"] == [[], []]
