"""Flops and bytes of events, counted by the ops' records, and the rates that devices reach at best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.runtime import active
from tritensor.profiler.records import ArrayInfo

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


_LINEAR = ("linear", "linear_activation", "linear_activation_by_result")
# Ops whose gradient by either factor is a product of the same size. The cost of bias, activation and residual is not part of it.
_PRODUCTS = (
    *_LINEAR, "matmul", "add_product", "conv1d", "conv2d", "conv3d", "conv1d_input", "conv2d_input", "conv3d_input",
    "conv1d_weight", "conv2d_weight", "conv3d_weight", "conv1d_relu", "conv2d_relu", "conv3d_relu",
)  # fmt: skip
_ATTENTION = ("attention", "flash_attention")
_RECURRENT = {"lstm_sequence": 3, "gru_sequence": 2, "rnn_sequence": 2}  # the input that is the weight


def count_work(op: Any, given: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[int, int]:
    """(flops, bytes) of one forward call; (0, 0) where the record of the op counts none, or the count looks at values."""
    if op.work is None:
        return 0, 0
    try:
        found = op.work(*_flatten_variadic(op, given), **{**op.attrs, **attrs})
    # a form of the call that `work` does not know: no number rather than a wrong one
    except (TypeError, AttributeError, IndexError, ValueError):
        return 0, 0
    return int(found.flops), int(found.bytes)


def product_flops(op: Any, given: tuple[Any, ...], attrs: dict[str, Any], flops: int) -> int:
    """The flops of matrix products, convolutions and attention in a forward, which PyTorch's FlopCounterMode counts. Masked attention counts whole there."""
    if op.name in _PRODUCTS:
        return flops - _flops_beside_product(op.name, flops, given)
    if op.name in _ATTENTION:
        return count_work(op, given, {**attrs, "causal": False})[0]
    if op.name in _RECURRENT:
        return 2 * given[0].shape[0] * given[_RECURRENT[op.name]].size  # a row of the input meets the whole weight at each step
    return 0


def count_product_backward(name: str, product: int, given: tuple[Any, ...], needs: int) -> int:
    """The same of a backward: as many again for each factor that wants a gradient; of attention scores, and products with gradients of four."""
    if name in _PRODUCTS or name in _RECURRENT:
        return (needs if name in _PRODUCTS else 2) * product
    if name not in _ATTENTION:
        return 0
    q, k, v = given[0].shape, given[1].shape, given[2].shape
    each = 2 * math.prod(q[:-1]) * k[-2]
    return int(each * (3 * q[-1] + 2 * v[-1]))


def _flatten_variadic(op: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, the lists of an op with a variadic one flattened."""
    return tuple([x for y in given for x in (y if isinstance(y, tuple) else (y,))]) if op.variadic else given


def count_backward_work(name: str, flops: int, nbytes: int, given: tuple[Any, ...], needs: int) -> tuple[int, int]:
    """(flops, bytes) of a node's backward, of those of its forward; `needs` of the first two inputs want gradients. (0, 0) where nobody counts them."""
    if name not in _PRODUCTS or not flops:
        return 0, 0
    return needs * (flops - _flops_beside_product(name, flops, given)), needs * nbytes


def _flops_beside_product(name: str, flops: int, given: tuple[Any, ...]) -> int:
    """The flops of a forward beside its product: of linear bias, activation, scale and residual."""
    if name in _LINEAR and isinstance(given[0], ArrayInfo) and isinstance(given[1], ArrayInfo):
        return flops - 2 * given[0].size * given[1].shape[0]
    return 0
