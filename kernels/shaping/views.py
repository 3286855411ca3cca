"""View ops: the same memory under another shape. One function each for every device, no launch; the gradient is a rule of ops."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.cpu.strided_views import window
from tritensor.kernels.parts.cpu.summation import summed
from tritensor.kernels.parts.view_arithmetic import inverse, reshaped, zero_tensor
from tritensor.ops import array
from tritensor.ops.array import Array
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import Sample, Spec, normal_dim, op, ops

ANY = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")


# reshape: y.flat[i] = x.flat[i]
def _reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    if isinstance(x, StridedArray):
        return x.reshape(shape)
    try:
        return x.reshape(shape, copy=False)
    except ValueError:
        strides = array.element_strides(x)
        raise ShapeError(f"view: shape {x.shape} with strides {strides} has no view of shape {shape}; use reshape, which copies") from None


_reshape.planned = lambda x, *, shape: operator.methodcaller("reshape", shape)  # type: ignore[attr-defined]


def _reshape_shape(x: Any, *, shape: tuple[int, ...]) -> Spec:
    if math.prod(shape) != math.prod(x.shape):
        raise ShapeError(
            f"view: shape {tuple(x.shape)} has {math.prod(x.shape)} elements, shape {shape} needs {math.prod(shape)}; give sizes that multiply to as many"
        )
    return Spec(shape, x.dtype)


def _reshape_samples(rng: np.random.Generator) -> list[Sample]:
    # Only shapes that split axes or add and drop ones: those are views whatever the strides.
    return [
        Sample(rng.standard_normal((6, 5)), shape=(2, 3, 5)),
        Sample(rng.standard_normal((4, 1, 9)), shape=(4, 3, 1, 3)),
        Sample(rng.standard_normal((1, 7, 1)), shape=(7,)),
        Sample(rng.standard_normal(()), shape=(1, 1)),
        Sample(rng.standard_normal((1,)), shape=()),
        Sample(np.zeros((0, 3)), shape=(3, 0, 2)),
    ]


op(
    "reshape", _reshape, shape=_reshape_shape, samples=_reshape_samples, view=True, dtypes=ANY,
    rule=lambda g, x_shape: reshaped(g, x_shape),
    cpu_backward=lambda g, x_shape: g.reshape(x_shape),
    doc="The elements of x in C order under another shape; refuses where the strides allow no view.",
)  # fmt: skip


# permute: y[i_dims[0], i_dims[1], ...] = x[i_0, i_1, ...]
def _permute(x: Array, *, dims: tuple[int, ...]) -> Array:
    return x.transpose(dims)


_permute.planned = lambda x, *, dims: operator.methodcaller("transpose", dims)  # type: ignore[attr-defined]


def _permute_shape(x: Any, *, dims: tuple[int, ...]) -> Spec:
    shape = x.shape
    if len(dims) != len(shape) or (len(dims) > 1 and len(set(dims)) != len(dims)):
        raise ShapeError(f"permute: dims {dims} of x {tuple(shape)}: each of its {len(shape)} dims must be named once")
    return Spec(tuple([shape[d] for d in dims]), x.dtype)


def _permute_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 5)), dims=(1, 0)),
        Sample(rng.standard_normal((2, 3, 5)), dims=(2, 0, 1)),
        Sample(rng.standard_normal(()), dims=()),
        Sample(np.zeros((0, 3)), dims=(1, 0)),
    ]


op(
    "permute", _permute, shape=_permute_shape, samples=_permute_samples, view=True, dtypes=ANY,
    rule=lambda g, dims: ops.permute(g, dims=inverse(dims)),
    cpu_backward=lambda g, dims: g.transpose(inverse(dims)),
    doc="The dimensions in another order.",
)  # fmt: skip


# expand: y[..., i, ...] = x[..., 0, ...] along every stretched axis
def _expand(x: Array, *, shape: tuple[int, ...]) -> Array:
    if isinstance(x, StridedArray):
        return x.expand(shape)
    lead = len(shape) - x.ndim
    return window(
        x, shape, (0,) * lead + tuple([0 if n == 1 and m != 1 else s for n, m, s in zip(x.shape, shape[lead:], x.strides, strict=True)])
    )


def _planned_expand(x: np.ndarray, *, shape: tuple[int, ...]) -> Any:
    strides = _expand(x, shape=shape).strides
    return (lambda x: np.ndarray(shape, x.dtype, x, 0, strides)) if x.flags.c_contiguous else None


_expand.planned = _planned_expand  # type: ignore[attr-defined]


def _expand_shape(x: Any, *, shape: tuple[int, ...]) -> Spec:
    lead = len(shape) - len(x.shape)
    if lead < 0:
        raise ShapeError(f"expand: x {tuple(x.shape)} has more dimensions than shape {shape}")
    for n, m in zip(x.shape, shape[lead:], strict=True):
        if n not in (1, m):
            raise ShapeError(f"expand: x {tuple(x.shape)} to {shape}: size {n} cannot become {m}; only sizes of 1 are stretched")
    return Spec(shape, x.dtype)


def stretched(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of `large` along which `small` is repeated."""
    lead = len(large) - len(small)
    return (*range(lead), *[i + lead for i, n in enumerate(small) if n == 1 and large[i + lead] != 1])


def _expand_rule(g: Any, x_shape: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    axes = stretched(x_shape, shape)
    g = ops.sum(g, dim=axes, keepdim=True) if axes else g
    return ops.reshape(g, shape=x_shape) if len(shape) != len(x_shape) else g


def _expand_backward(g: np.ndarray, x_shape: tuple[int, ...]) -> np.ndarray:
    axes = stretched(x_shape, g.shape)
    return (summed(g, axes, True) if axes else g).reshape(x_shape)


def _expand_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 1)), shape=(3, 5)),
        Sample(rng.standard_normal((1, 4)), shape=(2, 3, 4)),
        Sample(rng.standard_normal((2, 3)), shape=(2, 3)),
        Sample(rng.standard_normal(()), shape=(2, 2)),
        Sample(rng.standard_normal((1, 3)), shape=(0, 3)),
    ]


op(
    "expand", _expand, shape=_expand_shape, samples=_expand_samples, view=True, rule=_expand_rule, cpu_backward=_expand_backward,
    doc="Repeat axes of size 1 (and new leading ones) without moving data: their stride is 0.",
)  # fmt: skip


# as_strided: y[i, j, ...] = x[offset + i * strides[0] + j * strides[1] + ...], x one-dimensional
def _as_strided(x: Array, *, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    step = x.strides[0]
    steps = tuple([s * step for s in strides])
    return x.as_strided(shape, steps, offset * step) if isinstance(x, StridedArray) else window(x, shape, steps, offset * step)


def _as_strided_shape(x: Any, *, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Spec:
    if len(x.shape) != 1:
        raise ShapeError(f"as_strided: x {tuple(x.shape)} is not one-dimensional; flatten it first")
    if len(shape) != len(strides):
        raise ShapeError(f"as_strided: shape {shape} and strides {strides} differ in length")
    if math.prod(shape):
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low, high = offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0)
        if low < 0 or high >= x.shape[0]:
            raise ShapeError(
                f"as_strided: shape {shape}, strides {strides}, offset {offset} read elements {low} to {high} of x's {x.shape[0]}; give smaller ones"
            )
    elif not 0 <= offset <= x.shape[0]:
        raise ShapeError(f"as_strided: offset {offset} lies outside x's {x.shape[0]} elements")
    return Spec(shape, x.dtype)


def _as_strided_rule(g: Any, x_shape: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    # An element read several times gets the sum of its gradients: a scatter over the positions that were read.
    count = math.prod(shape)
    positions = ops.arange(start=0, end=x_shape[0], step=1, dtype=np.dtype(np.int64), device=g.device)
    read = ops.as_strided(positions, shape=shape, strides=strides, offset=offset)
    return ops.scatter_add(zero_tensor(x_shape, g), reshaped(read, (count,)), reshaped(g, (count,)), dim=0)


def _as_strided_backward(g: np.ndarray, x_shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    read = _as_strided(np.arange(x_shape[0]), shape=g.shape, strides=strides, offset=offset).reshape(-1)
    if g.dtype.kind == "c":
        real, imaginary = (np.bincount(read, part.reshape(-1), x_shape[0]) for part in (g.real, g.imag))
        return (real + 1j * imaginary).astype(g.dtype)
    return np.bincount(read, g.reshape(-1).astype(np.float64), x_shape[0]).astype(g.dtype)


def _as_strided_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal(20), shape=(3, 4), strides=(2, 3), offset=1),  # overlaps itself
        Sample(rng.standard_normal(12), shape=(4, 3), strides=(1, 4), offset=0),
        Sample(rng.standard_normal(9), shape=(4,), strides=(-2,), offset=8),
        Sample(rng.standard_normal(5), shape=(2, 3), strides=(0, 1), offset=2),
        Sample(rng.standard_normal(5), shape=(), strides=(), offset=3),
    ]


op(
    "as_strided", _as_strided, shape=_as_strided_shape, samples=_as_strided_samples, view=True, rule=_as_strided_rule,
    cpu_backward=_as_strided_backward,
    doc="Any shape, strides and offset over the elements of a one-dimensional x, kept inside it.",
)  # fmt: skip


# diagonal: y[..., i] = x[..., i + max(-offset, 0), ..., i + max(offset, 0), ...]
def diagonal_view(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of two dimensions as a last dimension; a view that can be written."""
    if isinstance(x, StridedArray):
        rows, columns = x.shape[dim1], x.shape[dim2]
        first, second = max(-offset, 0), max(offset, 0)
        n = max(min(rows - first, columns - second), 0)
        rest = [d for d in range(x.ndim) if d not in (dim1, dim2)]
        strides = tuple(x.strides[d] for d in rest) + (x.strides[dim1] + x.strides[dim2],)
        start = first * x.strides[dim1] + second * x.strides[dim2] if n else 0
        return x.as_strided(tuple(x.shape[d] for d in rest) + (n,), strides, start)
    y = x.diagonal(offset, dim1, dim2)
    # gradients and in-place functions write through views
    y.flags.writeable = x.flags.writeable  # numpy hands out a read-only view
    return y


def diagonal_shape(shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> tuple[int, ...]:
    """Shape of the diagonal of `shape`."""
    if dim1 == dim2:
        raise ShapeError(f"diagonal: dim1 and dim2 are both {dim1}; name two different dimensions of x {tuple(shape)}")
    rest = tuple(n for d, n in enumerate(shape) if d not in (dim1, dim2))
    return (*rest, max(min(shape[dim1] - max(-offset, 0), shape[dim2] - max(offset, 0)), 0))


def _diagonal_shape(x: Any, *, offset: int, dim1: int, dim2: int) -> Spec:
    ndim = len(x.shape)
    return Spec(diagonal_shape(x.shape, offset, normal_dim("diagonal", dim1, ndim), normal_dim("diagonal", dim2, ndim)), x.dtype)


def _diagonal_backward(g: np.ndarray, x_shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> np.ndarray:
    y = np.zeros(x_shape, g.dtype)
    diagonal_view(y, offset, dim1, dim2)[...] = g
    return y


def _diagonal_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((4, 5)), offset=0, dim1=0, dim2=1),
        Sample(rng.standard_normal((4, 5)), offset=-2, dim1=0, dim2=1),
        Sample(rng.standard_normal((3, 2, 4)), offset=1, dim1=2, dim2=0),
        Sample(rng.standard_normal((3, 2)), offset=5, dim1=0, dim2=1),
    ]


op(
    "diagonal", lambda x, *, offset, dim1, dim2: diagonal_view(x, offset, dim1, dim2), shape=_diagonal_shape, samples=_diagonal_samples, view=True, dtypes=ANY,
    rule=lambda g, x_shape, offset, dim1, dim2: ops.pad_diagonal(g, shape=x_shape, offset=offset, dim1=dim1, dim2=dim2),
    cpu_backward=_diagonal_backward,
    doc="The diagonal of two dimensions, as a new last dimension.",
)  # fmt: skip


# unfold: y[..., i, ..., k] = x[..., i * step + k, ...]
def _unfold(x: Array, *, dim: int, size: int, step: int) -> Array:
    shape = (*x.shape[:dim], (x.shape[dim] - size) // step + 1, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
    return x.as_strided(shape, strides, 0) if isinstance(x, StridedArray) else window(x, shape, strides)


def _unfold_shape(x: Any, *, dim: int, size: int, step: int) -> Spec:
    if not x.shape:
        raise ShapeError("unfold: a 0-dimensional tensor has no dimension to unfold; reshape it to (1,)")
    n = x.shape[dim]
    if not 0 <= size <= n or step < 1:
        raise ShapeError(f"unfold: size {size}, step {step} along dim {dim} of x {tuple(x.shape)}; size must be 0 to {n} and step positive")
    return Spec((*x.shape[:dim], (n - size) // step + 1, *x.shape[dim + 1 :], size), x.dtype)


def _unfold_rule(g: Any, x_shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    ndim = len(x_shape)  # windows overlap: put last, (..., count, size), they are added up
    others = tuple(d for d in range(ndim) if d != dim)
    summed = ops.overlap_add(ops.permute(g, dims=(*others, dim, ndim)), step=step, length=x_shape[dim])
    return ops.permute(summed, dims=inverse((*others, dim)))


def _unfold_backward(g: np.ndarray, x_shape: tuple[int, ...], dim: int, size: int, step: int) -> np.ndarray:
    y, count, lead = np.zeros(x_shape, dtypes.accumulator(g.dtype)), g.shape[dim], (slice(None),) * dim
    # one window at a time, or of all windows as many elements as lie between two of them: neither meet, and the fewer steps are taken
    if count * step < size:
        windows = _unfold(y, dim=dim, size=size, step=step)
        for k in range(count):
            at: tuple[Any, ...] = (*lead, k)
            windows[at] += g[at]
        return y.astype(g.dtype, copy=False)
    for start in range(0, size if count else 0, step):
        width = min(step, size - start)
        part = _unfold(y[(*lead, slice(start, None))], dim=dim, size=width, step=step)[(*lead, slice(0, count))]
        part += g[..., start : start + width]
    return y.astype(g.dtype, copy=False)


def _unfold_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal(9), dim=0, size=3, step=1),
        Sample(rng.standard_normal((7, 3)), dim=0, size=2, step=2),
        Sample(rng.standard_normal((2, 8, 3)), dim=1, size=4, step=3),
        Sample(rng.standard_normal((2, 3)), dim=1, size=0, step=2),
    ]


op(
    "unfold", _unfold, shape=_unfold_shape, samples=_unfold_samples, view=True, rule=_unfold_rule, cpu_backward=_unfold_backward,
    doc="All windows of `size` elements along a dimension, `step` apart, as a new last dimension.",
)  # fmt: skip


# index_view: basic indexing; `index` holds an entry per dimension, in order: a non-negative int, a slice, or None (a new axis)
def _index_view(x: Array, *, index: tuple[Any, ...]) -> Array:
    y = x[index]
    return y if isinstance(y, np.ndarray | StridedArray) else x[(*index, ...)]  # numpy gives a scalar for a full set of ints


def _planned_index_view(x: np.ndarray, *, index: tuple[Any, ...]) -> Callable[..., np.ndarray] | None:
    whole = index if isinstance(x[index], np.ndarray) else (*index, ...)
    return operator.itemgetter(whole if len(whole) != 1 else whole[0])


_index_view.planned = _planned_index_view  # type: ignore[attr-defined]


def indexed_shape(shape: tuple[int, ...], index: tuple[Any, ...]) -> tuple[int, ...]:
    """Shape of the view that a basic index gives; raises IndexError for an int out of range or too many entries."""
    out, d = [], 0
    for i in index:
        if i is None:
            out.append(1)
            continue
        if d >= len(shape):
            used = sum(k is not None for k in index)
            raise IndexError(
                f"getitem: {used} indices for a {len(shape)}-dimensional tensor of shape {tuple(shape)}; give at most {len(shape)}"
            )
        n = shape[d]
        if isinstance(i, slice):
            out.append(len(range(*i.indices(n))))
        elif not -n <= i < n:
            raise IndexError(f"getitem: index {i} is out of range for dim {d} of size {n}")
        d += 1
    return (*out, *shape[d:])


def _index_view_backward(g: np.ndarray, x_shape: tuple[int, ...], index: tuple[Any, ...]) -> np.ndarray:
    y = np.zeros(x_shape, g.dtype)
    y[index] = g
    return y


def _index_view_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((4, 5)), index=(2,)),
        Sample(rng.standard_normal((4, 5)), index=(slice(None), slice(1, 4, 2))),
        Sample(rng.standard_normal((4, 5, 3)), index=(1, None, slice(None, None, -2), 2)),
        Sample(rng.standard_normal((4, 5)), index=(3, 4)),
        Sample(rng.standard_normal(7), index=(slice(5, 2),)),
        Sample(rng.standard_normal(()), index=(None,)),
    ]


op(
    "index_view", _index_view, samples=_index_view_samples, view=True, dtypes=ANY,
    rule=lambda g, x_shape, index: ops.pad_view(g, shape=x_shape, index=index),
    cpu_backward=_index_view_backward,
    doc="Basic indexing: ints, slices with any step, new axes.",
    shape=lambda x, *, index: Spec(indexed_shape(x.shape, index), x.dtype),
)  # fmt: skip
