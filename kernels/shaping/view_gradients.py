"""Gradients of views as ops: zeros with a slice (pad_view) or a diagonal (pad_diagonal) put in."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.copying import write
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.shaping.views import diagonal_shape, diagonal_view, indexed_shape
from tritensor.ops.array import Array, CudaArray
from tritensor.ops.table import Sample, Spec, op, ops


# pad_view: y = 0, y[index] = x
def _pad_view(x: np.ndarray, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> np.ndarray:
    y = np.zeros(shape, x.dtype)
    y[index] = x
    return y


def _pad_view_cpu(x: np.ndarray, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> np.ndarray:
    return _pad_view(x, shape=shape, index=index)  # which keeps the type: what plain_cpu does for that costs as much again


def _pad_view_shape(x: Any, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> Spec:
    if indexed_shape(shape, index) != tuple(x.shape):
        raise ShapeError(
            f"pad_view: x {tuple(x.shape)} is not what index {index} takes of shape {shape}, which is {indexed_shape(shape, index)}"
        )
    return Spec(shape, x.dtype)


def _pad_view_forward(x: CudaArray, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> CudaArray:
    y = filled(shape, x.dtype, x.device, 0)
    write(y[index], x)
    return y


def _pad_view_gradient(g: Array, index: tuple[Any, ...]) -> Array:
    # numpy gives a scalar, not an array, for ints alone
    return g[index] if isinstance(g, CudaArray) else np.asarray(g[index])


def _pad_view_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((5,)), shape=(4, 5), index=(2,)),
        Sample(rng.standard_normal((4, 2)), shape=(4, 5), index=(slice(None), slice(1, 4, 2))),
        Sample(rng.standard_normal((1, 3)), shape=(4, 5, 3), index=(1, None, slice(None, None, -2), 2)),
        Sample(rng.standard_normal(()), shape=(4, 5), index=(3, 4)),
        Sample(rng.standard_normal((0,)), shape=(7,), index=(slice(5, 2),)),
    ]


op(
    "pad_view", _pad_view, cpu=_pad_view_cpu, shape=_pad_view_shape, forward=_pad_view_forward, samples=_pad_view_samples,
    rule=lambda g, index: ops.index_view(g, index=index),
    backward=_pad_view_gradient,
    cpu_backward=_pad_view_gradient,
    doc="Zeros of `shape` in which x stands at a basic index.",
)  # fmt: skip


# pad_diagonal: y = 0, diagonal(y) = x
def _pad_diagonal(x: np.ndarray, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> np.ndarray:
    y = np.zeros(shape, x.dtype)
    square = np.moveaxis(y, (dim1, dim2), (-2, -1))
    for i in range(x.shape[-1]):
        square[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return y


def _pad_diagonal_cpu(x: np.ndarray, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> np.ndarray:
    y = np.zeros(shape, x.dtype)
    diagonal: Any = diagonal_view(y, offset, dim1, dim2)
    diagonal[...] = x
    return y


def _pad_diagonal_shape(x: Any, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Spec:
    taken = diagonal_shape(shape, offset, dim1, dim2)
    if taken != tuple(x.shape):
        raise ShapeError(f"pad_diagonal: x {tuple(x.shape)} is not the diagonal of shape {shape}, which is {taken}")
    return Spec(shape, x.dtype)


def _pad_diagonal_forward(x: CudaArray, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> CudaArray:
    y = filled(shape, x.dtype, x.device, 0)
    write(cast(CudaArray, diagonal_view(y, offset, dim1, dim2)), x)
    return y


def _pad_diagonal_gradient(g: Array, offset: int, dim1: int, dim2: int) -> Array:
    return diagonal_view(g, offset, dim1, dim2)


def _pad_diagonal_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((4,)), shape=(4, 5), offset=0, dim1=0, dim2=1),
        Sample(rng.standard_normal((2,)), shape=(4, 5), offset=-2, dim1=0, dim2=1),
        Sample(rng.standard_normal((2, 2)), shape=(3, 2, 4), offset=1, dim1=2, dim2=0),
        Sample(rng.standard_normal((0,)), shape=(3, 2), offset=5, dim1=0, dim2=1),
    ]


op(
    "pad_diagonal", _pad_diagonal, cpu=_pad_diagonal_cpu, shape=_pad_diagonal_shape, forward=_pad_diagonal_forward, samples=_pad_diagonal_samples,
    rule=lambda g, offset, dim1, dim2: ops.diagonal(g, offset=offset, dim1=dim1, dim2=dim2),
    backward=_pad_diagonal_gradient,
    cpu_backward=_pad_diagonal_gradient,
    doc="Zeros of `shape` with x on a diagonal.",
)  # fmt: skip
