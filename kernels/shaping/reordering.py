"""flip and roll: the same elements in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.strides import image_strides
from tritensor.kernels.parts.allocation import allocate, allocate_result
from tritensor.kernels.parts.copying import assigned, write
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op, ops

ANY = ("float16", "bfloat16", "float32", "float64", "int64", "bool")


def _same(x: Any, **_: Any) -> Spec:
    return Spec(tuple(x.shape), x.dtype)


# flip: y[.., i, ..] = x[.., n - 1 - i, ..]
def _reversed(dims: tuple[int, ...], ndim: int) -> tuple[slice, ...]:
    return tuple(slice(None, None, -1) if d in dims else slice(None) for d in range(ndim))


def _flip(x: np.ndarray, *, dims: tuple[int, ...]) -> np.ndarray:
    return np.flip(x, dims)


def _flip_cpu(x: np.ndarray, *, dims: tuple[int, ...]) -> np.ndarray:
    return np.array(x[_reversed(dims, x.ndim)])


def _flip_forward(x: CudaArray, *, dims: tuple[int, ...]) -> CudaArray:
    return assigned(allocate_result((x,), x.shape, x.dtype), x[_reversed(dims, x.ndim)])


def _flip_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 5)), dims=(1,)),
        Sample(rng.standard_normal((2, 3, 4)), dims=(0, 2)),
        Sample(rng.standard_normal(()), dims=()),
        Sample(np.zeros((0, 3)), dims=(0,)),
    ]


op(
    "flip", _flip, cpu=_flip_cpu, forward=_flip_forward, samples=_flip_samples, dtypes=ANY, layout="elementwise",
    rule=lambda g, dims: ops.flip(g, dims=dims),
    backward=lambda g, dims: _flip_forward(g, dims=dims),
    cpu_backward=lambda g, dims: _flip_cpu(g, dims=dims),
    doc="The elements in reverse order along `dims`.",
    shape=lambda x, *, dims: _same(x),
)  # fmt: skip


# roll: y[.., (i + s) mod n, ..] = x[.., i, ..]
def _roll(x: np.ndarray, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    return np.roll(x, shifts, dims)


def _roll_cpu(x: np.ndarray, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    given = x
    for shift, dim in zip(shifts, dims, strict=True):
        lead, n = (slice(None),) * dim, x.shape[dim]
        k = n - shift % n if n else 0
        x = np.concatenate([x[(*lead, slice(k, None))], x[(*lead, slice(0, k))]], dim)
    return x.copy() if x is given else x


def _roll_shape(x: Any, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Spec:
    for d in dims:
        if not 0 <= d < len(x.shape):
            raise IndexError(f"roll: dim {d} of a tensor of {len(x.shape)} dimensions; leave dims out to roll the flattened tensor")
    return _same(x)


def _roll_forward(x: CudaArray, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> CudaArray:
    """Two launches per dimension: the part that stays in front and the part that comes around."""
    for shift, dim in zip(shifts, dims, strict=True):
        n = x.shape[dim]
        k = shift % n if n else 0
        y = allocate(x.shape, x.dtype, x, image_strides(x.shape, ((x.shape, x.strides),)))
        lead = (slice(None),) * dim
        write(y[(*lead, slice(k, None))], x[(*lead, slice(0, n - k))])
        write(y[(*lead, slice(0, k))], x[(*lead, slice(n - k, None))])
        x = y
    # nothing was shifted: a copy all the same, since roll is no view
    return x if dims else assigned(allocate(x.shape, x.dtype, x.device), x)


def _roll_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((5,)), shifts=(2,), dims=(0,)),
        Sample(rng.standard_normal((3, 4)), shifts=(-1, 6), dims=(0, 1)),
        Sample(rng.standard_normal((3, 4)), shifts=(0,), dims=(1,)),
        Sample(np.zeros((0, 3)), shifts=(1,), dims=(0,)),
    ]


op(
    "roll", _roll, cpu=_roll_cpu, shape=_roll_shape, forward=_roll_forward, samples=_roll_samples, dtypes=ANY, layout="images",
    rule=lambda g, shifts, dims: ops.roll(g, shifts=tuple(-s for s in shifts), dims=dims),
    backward=lambda g, shifts, dims: _roll_forward(g, shifts=tuple(-s for s in shifts), dims=dims),
    cpu_backward=lambda g, shifts, dims: _roll_cpu(g, shifts=tuple([-s for s in shifts]), dims=dims),
    doc="The elements shifted along `dims`, those pushed out coming back at the other end.",
)  # fmt: skip
