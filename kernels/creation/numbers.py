"""Ops that make arrays from numbers: full, arange, linspace, eye; and the triangles tril and triu."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import device as Device
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.cpu import triangles
from tritensor.kernels.parts.filling import filled, refuse_negative_size
from tritensor.kernels.parts.float8 import moved_as_bytes
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op, ops, registry

BLOCK = 1024
_FEW = 1024  # elements of which a plan keeps a model to copy


def _full_reference(*, shape: tuple[int, ...], value: Any, dtype: np.dtype, device: Device) -> np.ndarray:
    return np.full(shape, value, dtype)


def _full_cpu(*, shape: tuple[int, ...], value: Any, dtype: np.dtype, device: Device, out: np.ndarray | None = None) -> np.ndarray:
    if out is None and value == 0 and not (type(value) is float and math.copysign(1.0, value) < 0):
        return np.zeros(shape, dtype)
    with np.errstate(over="ignore"):  # a number that is too large for the type is inf
        if out is None:
            return np.full(shape, value, dtype)
        out[...] = np.full((), value, dtype)
    return out


def _planned_full(*, shape: tuple[int, ...], value: Any, dtype: np.dtype, device: Device) -> Callable[[], np.ndarray] | None:
    if math.prod(shape) > _FEW:
        return None
    model = _full_cpu(shape=shape, value=value, dtype=dtype, device=device)
    return functools.partial(np.zeros, shape, dtype) if not model.tobytes().strip(b"\0") else model.copy


_full_cpu.planned = _planned_full  # type: ignore[attr-defined]


def _full_forward(*, shape: tuple[int, ...], value: Any, dtype: np.dtype, device: Device, out: CudaArray | None = None) -> CudaArray:
    if out is not None and not out.is_contiguous():
        one = filled((), dtype, device, value)
        spread = CudaArray(one.storage, shape, dtype, (0,) * len(shape), one.offset)
        return registry["copy"].forward(spread, out=out)  # type: ignore[misc]
    return filled(shape, dtype, device, value, out)


def _full_shape(*, shape: tuple[int, ...], value: Any, dtype: np.dtype, device: Device) -> Spec:
    refuse_negative_size("full", shape)
    return Spec(shape, dtype)


def _full_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(shape=(3, 5), value=1.5, dtype=np.dtype(np.float32)),
        Sample(shape=(1100,), value=-7, dtype=np.dtype(np.int64)),
        Sample(shape=(), value=0.1, dtype=np.dtype(np.float64)),
        Sample(shape=(5,), value=0.1, dtype=dtypes.bfloat16.numpy),
        Sample(shape=(5,), value=True, dtype=np.dtype(np.bool_)),
        Sample(shape=(2,), value=math.inf, dtype=np.dtype(np.float16)),
        Sample(shape=(0, 3), value=2, dtype=np.dtype(np.float32)),
    ]


op(
    "full", _full_reference, cpu=_full_cpu, shape=_full_shape, forward=_full_forward, samples=_full_samples, differentiable=False,
    dtypes=("float32",), into=True, doc="An array of one value.",
)  # fmt: skip


# arange: y[i] = start + i * step, computed in float64 for floating types and exactly in int64 for integers
@triton.jit
def _arange_kernel(y, start, step, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    value = start + i.to(step.dtype) * step
    tl.store(y + i, value.to(y.dtype.element_ty), mask=i < n)


def arange_count(start: Any, end: Any, step: Any) -> int:
    """The number of start, start + step, ... before end."""
    return max(math.ceil((end - start) / step), 0)


def _arange_reference(*, start: Any, end: Any, step: Any, dtype: np.dtype, device: Device) -> np.ndarray:
    return (start + step * np.arange(arange_count(start, end, step))).astype(dtype)


def _arange_cpu(*, start: Any, end: Any, step: Any, dtype: np.dtype, device: Device) -> np.ndarray:
    if type(start) is type(end) is type(step) is int and dtype.kind in "iu":
        return np.arange(start, end, step, dtype=dtype)
    compute_type: Any = np.float64 if dtypes.is_float(dtype) else np.int64
    y = np.empty(arange_count(start, end, step), dtype)
    counted = np.arange(min(_RUN, y.size), dtype=compute_type)
    room = np.empty_like(counted)
    for first in range(0, y.size, _RUN):
        part = y[first : first + _RUN]
        value = np.add(counted[: part.size], compute_type(first), out=room[: part.size])
        value *= compute_type(step)
        np.add(value, compute_type(start), out=part, casting="unsafe")  # rounded once more to y's type, in numpy's buffer
    return y


def _planned_arange(**attrs: Any) -> Callable[[], np.ndarray] | None:
    few = arange_count(attrs["start"], attrs["end"], attrs["step"]) <= _FEW
    return _arange_cpu(**attrs).copy if few else None


_arange_cpu.planned = _planned_arange  # type: ignore[attr-defined]


def _arange_forward(*, start: Any, end: Any, step: Any, dtype: np.dtype, device: Device) -> CudaArray:
    compute_type = np.float64 if dtypes.is_float(dtype) else np.int64
    y = allocate((arange_count(start, end, step),), dtype, device)
    launch(_arange_kernel, (triton.cdiv(y.size, BLOCK),), y, compute_type(start), compute_type(step), y.size, BLOCK=BLOCK)
    return y


def _arange_shape(*, start: Any, end: Any, step: Any, dtype: np.dtype, device: Device) -> Spec:
    if step == 0:
        raise ArgumentError("arange: step is 0; give a positive or negative one")
    if not all(map(math.isfinite, (start, end, step))):
        raise ArgumentError(f"arange: from {start} to {end} by {step}: all three must be finite")
    return Spec((arange_count(start, end, step),), dtype)


def _arange_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(start=0, end=7, step=1, dtype=np.dtype(np.int64)),
        Sample(start=0.5, end=-2.0, step=-0.25, dtype=np.dtype(np.float32)),
        Sample(start=3, end=1030, step=1, dtype=np.dtype(np.float64)),
        Sample(start=3, end=1, step=1, dtype=np.dtype(np.int32)),
    ]


op(
    "arange", _arange_reference, cpu=_arange_cpu, shape=_arange_shape, forward=_arange_forward, samples=_arange_samples, differentiable=False,
    dtypes=("float32",), doc="start, start + step, ... before end.",
)  # fmt: skip


# linspace: y[i] = start + i * d for the first half, end - (n - 1 - i) * d for the second, d = (end - start) / (n - 1)
@triton.jit
def _linspace_kernel(y, start, end, step, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    up = start + i.to(tl.float64) * step
    down = end - (n - 1 - i).to(tl.float64) * step
    tl.store(y + i, maths.stored(tl.where(2 * i < n, up, down), y.dtype.element_ty), mask=i < n)


def _linspace_reference(*, start: Any, end: Any, steps: int, dtype: np.dtype, device: Device) -> np.ndarray:
    return np.linspace(start, end, steps).astype(dtype)


def _linspace_cpu(*, start: Any, end: Any, steps: int, dtype: np.dtype, device: Device) -> np.ndarray:
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    y = np.empty(steps, dtype)
    half = (steps + 1) // 2
    for first in range(0, steps, _RUN):  # in runs that stay in the cache
        last = min(first + _RUN, steps)
        value = np.arange(first, last, dtype=np.complex128 if isinstance(start, complex) else np.float64)
        cut = min(max(half - first, 0), last - first)
        up, down = value[:cut], value[cut:]
        up *= step
        up += start
        np.subtract(steps - 1, down, out=down)
        down *= step
        np.subtract(end, down, out=down)
        y[first:last] = value  # integers are truncated
    return y


_RUN = 16384


def _linspace_forward(*, start: float, end: float, steps: int, dtype: np.dtype, device: Device) -> CudaArray:
    y = allocate((steps,), dtype, device)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    launch(_linspace_kernel, (triton.cdiv(steps, BLOCK),), y, np.float64(start), np.float64(end), np.float64(step), steps, BLOCK=BLOCK)
    return y


def _linspace_shape(*, start: Any, end: Any, steps: int, dtype: np.dtype, device: Device) -> Spec:
    if steps < 0:
        raise ShapeError(f"linspace: steps {steps} is negative; give 0 or more")
    if isinstance(start, complex) and device.type == "cuda":
        raise DTypeError("linspace: complex numbers live on the CPU only; make them there")
    return Spec((steps,), dtype)


def _linspace_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(start=0.0, end=1.0, steps=7, dtype=np.dtype(np.float32)),
        Sample(start=3.0, end=-2.0, steps=1030, dtype=np.dtype(np.float64)),
        Sample(start=2.0, end=5.0, steps=1, dtype=np.dtype(np.float32)),
        Sample(start=0.0, end=1.0, steps=0, dtype=np.dtype(np.float32)),
    ]


op(
    "linspace", _linspace_reference, cpu=_linspace_cpu, shape=_linspace_shape, forward=_linspace_forward, samples=_linspace_samples, differentiable=False,
    dtypes=("float32",), doc="`steps` numbers from start to end, both included, equally far apart.",
)  # fmt: skip


# eye: y[i, j] = 1 where i = j
@triton.jit
def _eye_kernel(y, n, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    tl.store(y + i, (i // columns == i % columns).to(y.dtype.element_ty), mask=i < n)


def _eye_reference(*, rows: int, columns: int, dtype: np.dtype, device: Device) -> np.ndarray:
    return (np.arange(rows)[:, None] == np.arange(columns)).astype(dtype)


def _eye_forward(*, rows: int, columns: int, dtype: np.dtype, device: Device) -> CudaArray:
    y = allocate((rows, columns), dtype, device)
    launch(_eye_kernel, (triton.cdiv(y.size, BLOCK),), y, y.size, columns, BLOCK=BLOCK)
    return y


def _eye_shape(*, rows: int, columns: int, dtype: np.dtype, device: Device) -> Spec:
    refuse_negative_size("eye", (rows, columns))
    return Spec((rows, columns), dtype)


def _eye_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rows=3, columns=5, dtype=np.dtype(np.float32)),
        Sample(rows=41, columns=33, dtype=np.dtype(np.int64)),
        Sample(rows=0, columns=3, dtype=np.dtype(np.float32)),
    ]


op(
    "eye", _eye_reference, shape=_eye_shape, forward=_eye_forward, samples=_eye_samples, differentiable=False, dtypes=("float32",),
    cpu=lambda *, rows, columns, dtype, device: np.eye(rows, columns, dtype=dtype), doc="Ones on the diagonal, zeros elsewhere.",
)  # fmt: skip


# tril: y[..., i, j] = x[..., i, j] where j - i <= diagonal, else 0; triu: where j - i >= diagonal
@triton.jit(do_not_specialize=["rows", "diagonal"])
def _triangle_kernel(x, y, n, rows, columns, diagonal, UPPER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    above = i % columns - i // columns % rows
    keep = above >= diagonal if UPPER else above <= diagonal
    tl.store(y + i, tl.load(x + i, mask=(i < n) & keep, other=0), mask=i < n)


def _triangle(x: CudaArray, diagonal: int, upper: bool) -> CudaArray:
    x = to_c_order(x)
    y = allocate(x.shape, x.dtype, x.device)
    launch(_triangle_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, x.shape[-2], x.shape[-1], diagonal, UPPER=upper, BLOCK=BLOCK)
    return y


def _triangle_shape(x: Any, *, diagonal: int) -> Spec:
    if len(x.shape) < 2:
        raise ShapeError(f"tril/triu: x {tuple(x.shape)} has fewer than two dimensions; give a matrix, or a batch of them")
    return Spec(x.shape, x.dtype)


def _triangle_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((4, 5)), diagonal=0),
        Sample(rng.standard_normal((2, 5, 3)), diagonal=-1),
        Sample(rng.standard_normal((33, 35)), diagonal=2),
        Sample(np.zeros((0, 3)), diagonal=0),
    ]


def _register_triangle(name: str, of: Callable[[np.ndarray, int], np.ndarray], upper: bool, doc: str) -> None:
    def reference(x: np.ndarray, *, diagonal: int) -> np.ndarray:
        above = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]  # the diagonal
        return np.where(above >= diagonal if upper else above <= diagonal, x, 0)

    op(
        name, reference, cpu=lambda x, *, diagonal: of(x, diagonal), shape=_triangle_shape, samples=_triangle_samples,
        forward=moved_as_bytes(lambda x, *, diagonal: _triangle(x, diagonal, upper)),
        rule=lambda g, diagonal: getattr(ops, name)(g, diagonal=diagonal),
        backward=lambda g, diagonal: _triangle(g, diagonal, upper),
        cpu_backward=lambda g, diagonal: of(g, diagonal),
        dtypes=("float16", "bfloat16", "float32", "float64", "int64", "bool"), doc=doc,
    )  # fmt: skip


_register_triangle("tril", triangles.lower, False, "The lower triangle of the last two dimensions, zeros above it.")
_register_triangle("triu", triangles.upper, True, "The upper triangle of the last two dimensions, zeros below it.")
