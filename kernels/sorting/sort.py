"""sort, argsort, sort_values and topk along a dim: NaN is the largest, -0.0 equals 0.0, equal elements stay in the order of their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import OutOfRangeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_elementwise_layout
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.indices.flat_positions import FEW, few_positions
from tritensor.kernels.parts.pointwise_samples import spaced
from tritensor.kernels.parts.reduction import ORDERED
from tritensor.kernels.sorting import cpu_order
from tritensor.kernels.sorting.rows import first_of_rows, put_back
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, normal_dim, op, ops, refuse_kind

INT64 = np.dtype(np.int64)
TYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


# References: plain mathematics.
def _sort(x: np.ndarray, *, dim: int, descending: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The elements in order along dim, and the indices they came from."""
    order = _argsort(x, dim=dim, descending=descending)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


def _argsort(x: np.ndarray, *, dim: int, descending: bool = False) -> np.ndarray:
    """The indices of the elements in order along dim."""
    if x.ndim == 0:
        return np.zeros((), INT64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # The upward order of the flipped array, read from its end: equal elements stay in the order of their indices.
    return x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)


def _sort_values(x: np.ndarray, *, dim: int) -> np.ndarray:
    """The elements in ascending order along dim, where nobody asks for their indices."""
    return np.sort(x, axis=dim) if x.ndim else x


def _topk(x: np.ndarray, *, k: int, dim: int, largest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The k largest (or smallest) elements along dim, first the outermost, and the indices they came from."""
    values, order = _sort(x, dim=dim, descending=largest)
    return (values, order) if x.ndim == 0 else (np.take(values, range(k), axis=dim), np.take(order, range(k), axis=dim))


# On the CPU
def _sort_cpu(x: np.ndarray, *, dim: int, descending: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rows = cpu_order.to_rows(x, dim)
    order = cpu_order.stable_order(rows, descending)
    return cpu_order.from_rows(cpu_order.take_in_rows(rows, order), x.shape, dim), cpu_order.from_rows(order, x.shape, dim)


def _topk_cpu(x: np.ndarray, *, k: int, dim: int, largest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    if x.ndim == 1 and k and x.size <= cpu_order.FEW and largest and x.dtype.kind != "V":
        columns = len(x) - 1 - x[::-1].argsort(kind="stable")[: -k - 1 : -1]
        return x.take(columns), columns
    rows = cpu_order.to_rows(x, dim)
    columns = cpu_order.first_columns(rows, k, largest)
    return cpu_order.from_rows(cpu_order.take_in_rows(rows, columns), x.shape, dim), cpu_order.from_rows(columns, x.shape, dim)


# On the device
def _sort_forward(x: CudaArray, *, dim: int, descending: bool = False) -> tuple[CudaArray, CudaArray]:
    values, indices = first_of_rows(x, dim, x.shape[dim] if x.shape else 1, descending)
    return to_elementwise_layout(values, (x,)), to_elementwise_layout(indices, (x,))


# Shapes
def _sort_shape(x: Any, *, dim: int, descending: bool = False) -> tuple[Spec, Spec]:
    _check("sort", x, dim)
    return Spec(tuple(x.shape), x.dtype), Spec(tuple(x.shape), INT64)


def _index_shape(x: Any, *, dim: int, descending: bool = False) -> Spec:
    _check("argsort", x, dim)
    return Spec(tuple(x.shape), INT64)


def _values_shape(x: Any, *, dim: int) -> Spec:
    _check("sort", x, dim)
    return Spec(tuple(x.shape), x.dtype)


def _check(name: str, x: Any, dim: int) -> int:
    refuse_kind(name, x.dtype, ORDERED)
    return normal_dim(name, dim, len(x.shape))


def _topk_shape(x: Any, *, k: int, dim: int, largest: bool = True) -> tuple[Spec, Spec]:
    d = _check("topk", x, dim)
    n = x.shape[d] if len(x.shape) else 1
    if not 0 <= k <= n:
        raise OutOfRangeError(f"topk: k {k} of {n} elements along dim {d} of x {tuple(x.shape)}; give k from 0 to {n}")
    shape = (*x.shape[:d], k, *x.shape[d + 1 :]) if len(x.shape) else ()
    return Spec(shape, x.dtype), Spec(shape, INT64)


# The gradient of what was chosen goes to where it came from; none comes twice.
def _rule(g: Any, indices: Any, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: int) -> Any:
    if g[0] is None:
        return None
    zeros = ops.full(shape=tuple(x_shape), value=0, dtype=x_dtype, device=indices.device)
    return ops.scatter(zeros, indices, g[0], dim=dim)


def _backward(g: Any, indices: CudaArray, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: int) -> Any:
    if g[0] is None:
        return None
    whole = tuple(indices.shape) == tuple(x_shape)
    dx = allocate(tuple(x_shape), x_dtype, indices) if whole else filled(tuple(x_shape), x_dtype, indices.device, 0)
    put_back(g[0], indices, dx, dim)
    return dx


def _cpu_backward(g: Any, indices: np.ndarray, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: int) -> Any:
    if g[0] is None:
        return None
    if x_shape and indices.size <= FEW:
        dx = np.zeros(x_shape, x_dtype)
        dx.reshape(-1)[few_positions(x_shape, indices, normal_dim("sort", dim, len(x_shape)))] = g[0]
        return dx
    given, columns = cpu_order.to_rows(g[0], dim), cpu_order.to_rows(indices, dim)
    n = x_shape[dim] if x_shape else 1
    rows = np.zeros((given.shape[0], n), x_dtype)
    rows.reshape(-1)[columns if given.shape[0] == 1 else columns + (np.arange(given.shape[0]) * n)[:, None]] = given
    return cpu_order.from_rows(rows, x_shape, dim)


# Samples
def special(rng: np.random.Generator) -> np.ndarray:
    """Rows with ties, infinities, zeros of both signs, NaN of both signs."""
    x = np.round(rng.normal(size=(4, 24)))
    x[0, ::5], x[1, 3], x[1, 9], x[2, 2], x[3, ::7] = -0.0, np.inf, -np.inf, np.nan, -np.nan
    return x


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Rows along every dim, ties, what is special. Rows of more than a tile: tests/kernels/sorting, and the timed sizes."""
    return [
        Sample(spaced(rng, 5, 7), dim=1, descending=False),
        Sample(spaced(rng, 3, 20, 2), dim=1, descending=True),
        Sample(spaced(rng, 9, 3), dim=0, descending=False),
        Sample(special(rng), dim=1, descending=False, smooth=False),
        Sample(special(rng), dim=1, descending=True, smooth=False),
        Sample(rng.normal(size=(3, 0)), dim=1, descending=False),
        Sample(np.asarray(1.5), dim=0, descending=False),
    ]


def _topk_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(spaced(rng, 5, 7), k=3, dim=1, largest=True),
        Sample(spaced(rng, 9, 3), k=1, dim=0, largest=False),
        Sample(spaced(rng, 2, 70, 2), k=5, dim=1, largest=True),
        Sample(special(rng), k=6, dim=1, largest=True, smooth=False),
        Sample(special(rng), k=4, dim=1, largest=False, smooth=False),
        Sample(spaced(rng, 2, 3), k=0, dim=1, largest=True),
        Sample(np.asarray(1.5), k=1, dim=0, largest=True),
    ]


_GRADIENTS: Any = {"rule": (_rule,), "backward": (_backward,), "cpu_backward": (_cpu_backward,)}
op(
    "sort", _sort, cpu=_sort_cpu, layout="elementwise", shape=_sort_shape, forward=_sort_forward, outputs=("values", "indices"), dtypes=TYPES, samples=_samples,
    **_GRADIENTS,
    sizes=lambda rng: [Sample(rng.normal(size=(4096, 256)), dim=1, descending=False), Sample(rng.normal(size=(1, 1 << 20)), dim=1, descending=False)],
    work=lambda x, **attrs: Work(0, 2 * x.nbytes + 8 * x.size),
)  # fmt: skip
op(
    "argsort", _argsort, layout="elementwise", shape=_index_shape, differentiable=False, dtypes=("float32", "int64"),
    cpu=lambda x, *, dim, descending=False: cpu_order.from_rows(cpu_order.stable_order(cpu_order.to_rows(x, dim), descending), x.shape, dim),
    forward=lambda x, *, dim, descending=False: _sort_forward(x, dim=dim, descending=descending)[1],
    samples=lambda rng: [Sample(special(rng), dim=1, descending=True), Sample(spaced(rng, 9, 3), dim=0, descending=False)],
)  # fmt: skip
op(
    "sort_values", _sort_values, layout="elementwise", shape=_values_shape, differentiable=False, dtypes=TYPES[:5],
    cpu=lambda x, *, dim: cpu_order.from_rows(cpu_order.sorted_values(cpu_order.to_rows(x, dim)), x.shape, dim),
    forward=lambda x, *, dim: _sort_forward(x, dim=dim)[0],
    samples=lambda rng: [Sample(spaced(rng, 5, 7), dim=1), Sample(spaced(rng, 9, 3), dim=0)],
)  # fmt: skip
op(
    "topk", _topk, cpu=_topk_cpu, shape=_topk_shape, outputs=("values", "indices"), dtypes=TYPES, samples=_topk_samples,
    **_GRADIENTS,
    forward=lambda x, *, k, dim, largest=True: first_of_rows(x, dim, k, largest),
    sizes=lambda rng: [Sample(rng.normal(size=(64, 32000)), k=50, dim=1, largest=True)],
    work=lambda x, **attrs: Work(0, x.nbytes),
)  # fmt: skip
