"""Calls that `python -m pytest bench` times: those of the op table on each device that there is, and how one is set up.

On the CPU a call is timed by the clock on the wall. On a GPU launches return before their kernels have run, so the timer waits for the device before it
reads the clock: pytest-benchmark reads it before and after a round of so many calls that the wait weighs nothing. What the round tells is the time of a
call made one after another, which is the larger of what it costs the host and the device; the device's own time, from CUDA graphs and events as in
`python -m bench gpu`, and the host's are measured beside it and stand in `extra_info`, and rates are of the device's time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bench.cpu.ops import CACHE as SAME_INPUTS
from bench.cpu.ops import OnCpu, sized
from bench.gpu.clock import Ours, measure
from bench.gpu.command import why_not
from bench.gpu.configs import configs_of
from bench.gpu.rows import Case, Prepared, caller, cases, ordered, prepare
from bench.reports.report import CACHE as ROTATED
from bench.reports.report import processor
from tritensor.ground.errors import PluginError
from tritensor.ops.table.op_selection import UnknownOpError, select_ops

GPU_SECONDS = 0.2  # for the device's own time of a call


class Call(NamedTuple):
    """A row of the op table on a device, "cpu" or "cuda"."""

    case: Case
    device: str

    @property
    def name(self) -> str:
        """softmax-forward-float32-size0-cpu."""
        return f"{self.case.op.name}-{self.case.corner}-{self.case.dtype}-size{self.case.size}-{self.device}"


class Walk(NamedTuple):
    """The calls, and what pytest's header says of them."""

    calls: list[Call]
    header: list[str]


_WALK = pytest.StashKey[Walk]()


def walk(config: pytest.Config) -> Walk:
    """The calls that a session times, found once. Raises UsageError for an --op that gives none."""
    if _WALK not in config.stash:
        config.stash[_WALK] = _found(config.getoption("op", []))
    return config.stash[_WALK]


def _found(asked: list[str]) -> Walk:
    try:
        ops = ordered(select_ops(asked))
    except (UnknownOpError, PluginError) as error:
        raise pytest.UsageError(f"--op: {error}") from error
    on_cpu, left = sized(ops)
    header = [f"bench: {len(ops)} ops, {len(on_cpu)} calls on the CPU, {processor()}"]
    if left:
        header.append(f"bench: {len(left)} sizes are left to a GPU: {', '.join(left)}")
    calls = [Call(case, "cpu") for case in on_cpu]
    silent = {op.name for op in ops} - {c.case.op.name for c in calls} - {name.split()[0] for name in left}
    if silent:
        header.append(f"bench: {len(silent)} ops have no sizes, since they move no data: views and the like")
    why = why_not()
    if why:
        header.append(f"bench: device cuda is left out: {why}")
        return Walk(calls, header)
    from tritensor import cuda

    on_gpu = [Call(case, "cuda") for op in ops for case in cases(op, quick=False)]
    return Walk(calls + on_gpu, [*header, f"bench: {len(on_gpu)} calls on the GPU, {cuda.get_device_name(0)}"])


def synchronised() -> float:
    """The clock on the wall, in seconds, when the GPU has done what it was given."""
    from tritensor import cuda

    cuda.synchronize()
    return time.perf_counter()


class Ready(NamedTuple):
    """A call that is set up: the library on its device, the runs, what the row says before it is timed."""

    lib: Ours
    prepared: Prepared
    facts: dict[str, Any]

    def run(self) -> Callable[[], object]:
        """One call without arguments; on a GPU each takes the next set of inputs, so that none is found in the cache."""
        runs = self.prepared.runs
        if len(runs) == 1:
            return runs[0]
        turn = itertools.cycle(runs)
        return lambda: next(turn)()

    def rates(self, seconds: float) -> dict[str, float]:
        """GB/s and TFLOP/s of a call that takes so long."""
        return {"gb_per_s": self.prepared.bytes / seconds / 1e9, "tflop_per_s": self.prepared.flops / seconds / 1e12}

    def on_device(self) -> dict[str, Any]:
        """The GPU's own time of a call and its rates, and what it costs the host."""
        timed = measure(self.lib, self.prepared.runs, GPU_SECONDS)
        found = {"gpu_ms": timed.ms, "gpu_spread": timed.spread, "host_us": timed.host_us, **self.rates(timed.ms / 1e3)}
        return {**found, "gpu_note": timed.note} if timed.note else found


def ready(call: Call) -> Ready:
    """Inputs, the graph of a backward, and what the row says."""
    case, on_gpu = call.case, call.device == "cuda"
    if on_gpu:
        from tritensor import cuda

        lib, properties = Ours(), cuda.get_device_properties(0)
        processor_name, l2 = properties.name, properties.l2_cache_size
    else:
        lib, processor_name, l2 = OnCpu(), processor(), 0
    function = caller(lib, case)
    assert function is not None
    prepared = prepare(lib, case, l2, function)
    facts = {
        "op": case.op.name, "corner": case.corner, "dtype": case.dtype, "shape": case.label, "model": case.model, "device": call.device,
        "processor": processor_name, "bytes": prepared.bytes, "flops": prepared.flops, "sets": len(prepared.runs),
        "cache": ROTATED if on_gpu else SAME_INPUTS, "config": configs_of(prepared.runs[0]) if on_gpu else {"threads": lib.t.get_num_threads()},
    }  # fmt: skip
    return Ready(lib, prepared, facts)
