"""Rooflines of devices: the bytes of memory and floating point operations a second that they reach at best."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.runtime import active

_COPY = 64 << 20  # bytes of one of the two arrays: beyond a processor's caches
_SIDE = 768  # of the square product that is timed
_TRIES = 5
_TENSOR_CORES = {"float16": "f16", "bfloat16": "bf16", "float64": "f64"}  # by our types: the names in the compiler's table of rates
_LANES = 128  # float32 lanes of a multiprocessor, since sm_86; of sm_80 64 ("CUDA C++ Programming Guide", arithmetic instructions)


class Roof(NamedTuple):
    """Peaks of a device. `flops`: operations a second by type; `source`: of the figures."""

    name: str
    bandwidth: float
    flops: dict[str, float]
    source: str

    def least_seconds(self, flops: int, nbytes: int, dtype: str) -> float:
        """The seconds that a call with so many operations and bytes takes at least."""
        rate = self.flops.get(dtype, 0.0)
        return max(flops / rate if rate else 0.0, nbytes / self.bandwidth if self.bandwidth else 0.0)


def _least_seconds(f: Callable[[], Any]) -> float:
    """The least seconds of a few calls."""
    f()
    found = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        f()
        found.append(time.perf_counter() - start)
    return min(found)


_measured: dict[str, Roof] = {}


def measure_cpu_roof() -> Roof:
    """This machine's roof, measured once in a process: a copy of 64 MiB, and square matrix products by numpy with the threads that it uses now."""
    if "cpu" not in _measured:
        a, b = np.ones(_COPY, np.uint8), np.empty(_COPY, np.uint8)
        bandwidth = 2 * _COPY / _least_seconds(lambda: np.copyto(b, a))
        flops = {}
        for dtype in ("float32", "float64"):
            x = np.random.default_rng(0).standard_normal((_SIDE, _SIDE)).astype(dtype)
            flops[dtype] = 2 * _SIDE**3 / _least_seconds(lambda x=x: x @ x)  # type: ignore[misc]
        source = f"measured here: a copy of {_COPY >> 20} MiB, matrix products of {_SIDE} x {_SIDE}"
        _measured["cpu"] = Roof("cpu", bandwidth, flops, source)
    return _measured["cpu"]


def find_gpu_roof(index: int) -> Roof | None:
    """A GPU's roof, of its driver's clocks and the rates of the compiler's table; None where the device is emulated or its rates are not known."""
    import triton  # noqa: F401  (before the compiler's rooms, which what follows this import needs whole)

    from tritensor.cuda.compiler.prediction import RATES

    runtime = active.runtime()
    if not hasattr(runtime, "kernels"):
        return None
    p = runtime.properties(index)
    known = RATES.get(10 * p.capability[0] + p.capability[1]) or RATES.get(10 * p.capability[0])
    clock = p.clock_rate_khz * 1e3
    bandwidth = 2 * p.memory_clock_rate_khz * 1e3 * p.memory_bus_width / 8  # two transfers a clock
    if known is None or not clock:
        return None
    flops = {ours: known.flops[theirs] * p.multi_processor_count * clock for ours, theirs in _TENSOR_CORES.items()}
    lanes = _LANES // 2 if p.capability == (8, 0) else _LANES
    # a fused multiply-add is two operations
    flops["float32"] = max(2 * lanes * p.multi_processor_count * clock, _tf32(known) * p.multi_processor_count * clock)
    source = f"{p.multi_processor_count} multiprocessors at {clock / 1e9:.2f} GHz, memory of {p.memory_bus_width} bits, as the driver tells"
    return Roof(p.name, bandwidth or known.bandwidth, flops, source)


def _tf32(known: Any) -> float:
    """The float32 rate of tensor cores where the program lets them round to tf32, else 0."""
    from tritensor.ops.matmul_precision import get_float32_matmul_precision

    return float(known.flops["tf32"]) if get_float32_matmul_precision() != "highest" else 0.0
