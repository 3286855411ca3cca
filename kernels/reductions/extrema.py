"""Extrema and quantifiers: amax, amin, argmax, argmin, max_dim, min_dim, any, all. NaN wins every comparison; among equals the first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import along, reduced, stretch
from tritensor.kernels.parts.indices.flat_positions import FEW, few_positions
from tritensor.kernels.parts.pointwise_samples import spaced
from tritensor.kernels.parts.reduction import NUMBERS, ReductionFunctions, add, fold, reduction, spread, value, zero
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, normal_dims, ops

_I64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_FAR = {np.dtype(np.int32): 2**31 - 1, np.dtype(np.int64): 2**62}  # an index behind every real one
_ORDERED_DTYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool")


# The functions of the reductions.
@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _with_index(x, index):
    return x, index


# (a, i) stays if a > b, or a alone is NaN, or they are equal and i < j
@triton.jit
def _first_larger(a, i, b, j):
    a_nan, b_nan = a != a, b != b
    stays = (a > b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & (i < j))
    return tl.where(stays, a, b), tl.where(stays, i, j)


@triton.jit
def _first_smaller(a, i, b, j):
    a_nan, b_nan = a != a, b != b
    stays = (a < b) | (a_nan & ~b_nan) | (((a == b) | (a_nan & b_nan)) & (i < j))
    return tl.where(stays, a, b), tl.where(stays, i, j)


# (a, i) stays unless b, which comes later, is larger, or alone NaN
@triton.jit
def _walk_larger(a, i, b, j, count, share):
    stays = (b <= a) | (a != a)
    return tl.where(stays, a, b), tl.where(stays, i, j)


@triton.jit
def _walk_smaller(a, i, b, j, count, share):
    stays = (b >= a) | (a != a)
    return tl.where(stays, a, b), tl.where(stays, i, j)


@triton.jit
def _first(index):
    """0 for the index of a row that never was replaced, whose elements all are the identity's equals."""
    far = 2147483647 if index.dtype == tl.int32 else 4611686018427387904
    return tl.where(index == far, 0, index)


@triton.jit
def _index_alone(value, index):
    return _first(index)


@triton.jit
def _value_and_index(value, index):
    return value, _first(index)


@triton.jit
def _true(x, index):
    return (x != 0).to(tl.int32)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def _both(a, b):
    return a & b


@triton.jit
def _nonzero(a):
    return a != 0


def compared_in(dtype: np.dtype) -> tuple[np.dtype, ...]:
    """Values are compared as they are; 16-bit floats and small integers in 32 bits."""
    if dtypes.is_float(dtype):
        return (dtypes.accumulator(dtype),)
    return (np.dtype(np.int32) if dtype.itemsize < 4 else dtype,)


def _indexed_state(dtype: np.dtype, count: int) -> tuple[np.dtype, ...]:
    # indices of 32 bits where they suffice: a state of fewer registers
    return (*compared_in(dtype), np.dtype(np.int32) if count < _FAR[np.dtype(np.int32)] else _I64)


def loser(dtype: np.dtype, sign: int) -> Any:
    """The number that loses against all (sign -1: the lowest)."""
    if dtypes.is_float(dtype):
        return sign * float("inf")
    return int(np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max)


def _lowest(states: tuple[np.dtype, ...]) -> tuple[Any, ...]:
    return (loser(states[0], -1), *[_FAR[s] for s in states[1:]])


def _highest(states: tuple[np.dtype, ...]) -> tuple[Any, ...]:
    return (loser(states[0], 1), *[_FAR[s] for s in states[1:]])


# References: numpy's own.
def _over_dims(*functions: Callable[..., Any]) -> Callable[..., Any]:
    """The reference of numpy's function over dims; of two functions, both results."""

    def reference(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> Any:
        found = tuple(f(x, axis=dim, keepdims=keepdim) for f in functions)
        return found if len(found) > 1 else found[0]

    return reference


# The CPU.
_SHORT, _MANY = 32, 2560  # columns of a short row, elements of many such rows


def _widened(x: np.ndarray) -> np.ndarray:
    """bfloat16 as float32: numpy's own reductions know NaN only for its own types."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _extreme(ufunc: np.ufunc, x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """ufunc.reduce; many short rows column by column, because numpy's reduction starts anew for each row."""
    if x.size < _MANY or dims != (x.ndim - 1,) or not 1 < x.shape[-1] <= _SHORT or not x.flags.c_contiguous:
        return ufunc.reduce(x, dims, keepdims=keepdim)
    n = x.shape[-1]
    columns = x.reshape(-1, n)
    while columns.shape[1] > _SHORT // 2:  # the halves may overlap: what is compared twice changes nothing
        half = (columns.shape[1] + 1) // 2
        columns = ufunc(columns[:, :half], columns[:, -half:])
    out = columns[:, 0].copy()
    for j in range(1, columns.shape[1]):
        ufunc(out, columns[:, j], out=out)
    return out.reshape(reduced(x.shape, dims, keepdim))


def _extreme_cpu(name: str, ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    """The CPU's amax or amin."""

    def cpu(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
        dims = normal_dims(name, dim, x.ndim)
        if x.dtype.char in "fd":
            return _extreme(ufunc, x, dims, keepdim)
        return np.asarray(_extreme(ufunc, _widened(x), dims, keepdim), x.dtype)

    def planned(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> Callable[..., Any] | None:
        dims = normal_dims(name, dim, x.ndim)
        if x.dtype.char not in "fd" or not dims or x.size >= _MANY:
            return None
        return lambda x: ufunc.reduce(x, dims, None, None, keepdim)  # type: ignore[call-arg]  # by place, which is sooner

    cpu.planned = planned  # type: ignore[attr-defined]
    return cpu


def _index_cpu(method: str, x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    """argmax or argmin, the `method` of numpy's arrays."""
    return np.asarray(getattr(_widened(x), method)(dim if x.ndim else None, keepdims=keepdim))


def _value_and_index_cpu(method: str, ufunc: np.ufunc, x: np.ndarray, *, dim: Any, keepdim: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """By one pass for the index: of many elements a second one for the value would cost as much again."""
    if x.ndim and x.size < _MANY:
        values = ufunc.reduce(_widened(x), dim, keepdims=keepdim)
        return np.asarray(values, x.dtype), _index_cpu(method, x, dim=dim, keepdim=keepdim)
    index = _index_cpu(method, x, dim=dim, keepdim=True)
    if x.ndim == 0:
        return x.copy(), index
    values = np.take_along_axis(x, index, axis=dim)
    kept = reduced(x.shape, normal_dims("max_dim", dim, x.ndim), keepdim)
    return values.reshape(kept), index.reshape(kept)


def _truth_cpu(ufunc: np.ufunc, x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    return np.asarray(ufunc.reduce(x if x.dtype == _BOOL else x != 0, axis=normal_dims("any", dim, x.ndim), keepdims=keepdim))


# Gradients of amax and amin: g / (number of equals) at each of them; NaN, the largest of all, equals NaN.
def _ties_rule(g: Any, x: Any, y: Any, dim: Any) -> Any:
    dims = normal_dims("amax", dim, len(x.shape))
    kind = x._array.dtype
    ties = ops.add(ops.cast(ops.eq(x, stretch(y, x.shape, dims)), dtype=kind), ops.cast(ops.ne(x, x), dtype=kind))
    share = ops.div(ops.reshape(g, shape=reduced(x.shape, dims, True)), ops.sum(ties, dim=dims, keepdim=True))
    return ops.mul(ties, ops.expand(share, shape=x.shape))


@triton.jit
def _equal(x, y, index):
    return ((x == y) | (x != x)).to(tl.int32)


@triton.jit
def _shared(x, y, g, ties, index):
    return tl.where((x == y) | (x != x), maths.div(g, ties.to(g.dtype)), 0)


def _ties_backward(g: CudaArray, x: CudaArray, y: CudaArray, dim: Any) -> CudaArray:
    dims = normal_dims("amax", dim, len(x.shape))
    expanded_y = along(y, x.shape, dims)
    ties = allocate(reduced(x.shape, dims, True), np.dtype(np.int32), x)
    fold(ReductionFunctions(_equal, add, None, zero), (x, expanded_y), dims, (ties,), (np.dtype(np.int32),))
    dx = allocate(x.shape, x.dtype, x)
    spread(_shared, (x, expanded_y, along(g, x.shape, dims), ties.expand(x.shape)), dims, (dx,))
    return dx


def _ties_cpu_backward(g: np.ndarray, x: np.ndarray, y: np.ndarray, dim: Any) -> np.ndarray:
    # NaN is the result wherever there is one, and each NaN its equal
    dims = normal_dims("amax", dim, x.ndim)
    kept = reduced(x.shape, dims, True)
    ties = (x == y.reshape(kept)) | (x != x)
    n = np.add.reduce(ties, axis=dims, keepdims=True, dtype=np.float32)
    return np.where(ties, (g.reshape(kept) / n).astype(x.dtype, copy=False), x.dtype.type(0))


# Gradients of max_dim and min_dim: g at the chosen index.
def _chosen_rule(g: Any, indices: Any, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: Any) -> Any:
    if g[0] is None:
        return None
    dims = normal_dims("max_dim", dim, len(x_shape))
    if not dims:
        return g[0]
    here = ops.cast(
        ops.eq(positions(x_shape, dims[0], indices.device), ops.reshape(indices, shape=reduced(x_shape, dims, True))), dtype=x_dtype
    )
    return ops.mul(here, stretch(g[0], x_shape, dims))


def positions(shape: tuple[int, ...], dim: int, device: Any) -> Any:
    """0, 1, ... along dim, of size 1 along the others."""
    numbers = ops.arange(start=0, end=shape[dim] if shape else 1, step=1, dtype=_I64, device=device)
    return ops.reshape(numbers, shape=tuple(n if a == dim else 1 for a, n in enumerate(shape)))


@triton.jit
def _at_index(chosen, g, index):
    return tl.where(index == chosen, g, 0)


def _chosen_backward(g: Any, indices: CudaArray, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: Any) -> Any:
    # only the indices were used
    if g[0] is None:
        return None
    dims = normal_dims("max_dim", dim, len(x_shape))
    dx = allocate(x_shape, x_dtype, indices)
    spread(_at_index, (along(indices, x_shape, dims), along(g[0], x_shape, dims)), dims, (dx,))
    return dx


def _chosen_cpu_backward(g: Any, indices: np.ndarray, x_shape: tuple[int, ...], x_dtype: np.dtype, dim: Any) -> Any:
    if g[0] is None:
        return None
    dims = normal_dims("max_dim", dim, len(x_shape))
    if not dims:
        return g[0]
    kept = reduced(x_shape, dims, True)
    dx = np.zeros(x_shape, x_dtype)
    if indices.size <= FEW:
        dx.reshape(-1)[few_positions(x_shape, indices.reshape(kept), dims[0])] = g[0].reshape(kept)
        return dx
    np.put_along_axis(dx, indices.reshape(kept), g[0].reshape(kept), axis=dims[0])
    return dx


# Samples and registration.
def _value_samples(rng: np.random.Generator) -> list[Sample]:
    ties = np.round(rng.normal(size=(4, 6)))
    nan = spaced(rng, 3, 5)
    nan[1, 2] = np.nan
    return [
        Sample(spaced(rng, 5, 7), dim=(0, 1), keepdim=False),
        Sample(spaced(rng, 5, 7), dim=(1,), keepdim=True),
        Sample(spaced(rng, 70, 6), dim=(0,), keepdim=False),
        Sample(spaced(rng, 3, 4, 2), dim=(0, 2), keepdim=False),
        Sample(ties, dim=(1,), keepdim=False, smooth=False),
        Sample(nan, dim=(1,), keepdim=False, smooth=False),
        Sample(rng.normal(size=(5000,)), dim=(0,), keepdim=False, smooth=False),
    ]


def _index_samples(rng: np.random.Generator) -> list[Sample]:
    """Ties, NaN, one dim and all of them (an index into the flattened array), and rows shared among programs."""
    ties = np.round(rng.normal(size=(4, 6)))
    nan = rng.normal(size=(3, 5))
    nan[1, 2] = nan[1, 3] = np.nan
    return [
        Sample(spaced(rng, 5, 7), dim=1, keepdim=False),
        Sample(spaced(rng, 70, 6), dim=0, keepdim=True),
        Sample(spaced(rng, 3, 4, 2), dim=1, keepdim=False),
        Sample(ties, dim=1, keepdim=False, smooth=False),
        Sample(nan, dim=1, keepdim=False, smooth=False),
        Sample(np.full((2, 3), -np.inf), dim=1, keepdim=False, smooth=False),
        Sample(np.round(rng.normal(size=(1, 5000))), dim=1, keepdim=False, smooth=False),
    ]


def _flat_samples(rng: np.random.Generator) -> list[Sample]:
    ties = np.round(rng.normal(size=(3, 4, 5)))
    return [*_index_samples(rng), Sample(ties, dim=None, keepdim=False), Sample(rng.normal(size=(3, 4)), dim=None, keepdim=True)]


def _truth_samples(rng: np.random.Generator) -> list[Sample]:
    x = np.round(rng.normal(size=(6, 5)) * 0.7)
    nan = np.where(x > 0, np.nan, 0.0)
    return [
        Sample(x, dim=(0, 1), keepdim=False),
        Sample(x, dim=(1,), keepdim=True),
        Sample(x, dim=(0,), keepdim=False),
        Sample(nan, dim=(1,), keepdim=False),
        Sample(np.zeros((3, 0)), dim=(1,), keepdim=False),
        Sample(np.zeros((5000,)), dim=(0,), keepdim=False),
    ]


for _end, _what, _ufunc, _value_of, _index_of, _method, _combine, _indexed, _walk, _identity in (
    ("max", "largest", np.maximum, np.max, np.argmax, "argmax", _larger, _first_larger, _walk_larger, _lowest),
    ("min", "smallest", np.minimum, np.min, np.argmin, "argmin", _smaller, _first_smaller, _walk_smaller, _highest),
):
    _common: dict[str, Any] = {"identity": _identity, "needs_element": _what, "dtypes": _ORDERED_DTYPES}
    reduction(
        f"a{_end}", _over_dims(_value_of), cpu=_extreme_cpu(f"a{_end}", _ufunc), map=value, combine=_combine, finish=None, **_common,
        rule=(_ties_rule,), backward=(_ties_backward,), cpu_backward=(_ties_cpu_backward,), state=compared_in, samples=_value_samples,
        doc=f"{_what.capitalize()} value over dims; the gradient is shared evenly among equals.",
    )  # fmt: skip
    _common |= {"map": _with_index, "combine": _indexed, "walk": _walk, "state": _indexed_state, "ordered": True}
    reduction(
        f"arg{_end}", _over_dims(_index_of), cpu=partial(_index_cpu, _method), finish=_index_alone, **_common, rule=None, samples=_flat_samples,
        result=lambda dtype: (_I64,), doc=f"Index of the first {_what} along dim (None: in the flattened array).",
    )  # fmt: skip
    reduction(
        f"{_end}_dim", _over_dims(_value_of, _index_of), cpu=partial(_value_and_index_cpu, _method, _ufunc), finish=_value_and_index, **_common,
        rule=_chosen_rule, backward=_chosen_backward, cpu_backward=_chosen_cpu_backward, outputs=("values", "indices"), samples=_index_samples,
        result=lambda dtype: (dtype, _I64), doc=f"{_what.capitalize()} along dim and its first index; the gradient goes to that element.",
    )  # fmt: skip


def _start_at(start: int, states: Any) -> tuple[int, ...]:
    """The truth of no elements."""
    return (start,)


for _name, _ufunc, _function, _combine, _start, _what in (
    ("any", np.logical_or, np.any, _either, 0, "any element over dims is"), ("all", np.logical_and, np.all, _both, 1, "all elements over dims are"),
):  # fmt: skip
    reduction(
        _name, _over_dims(_function), cpu=partial(_truth_cpu, _ufunc), map=_true, combine=_combine, finish=_nonzero, rule=None,
        identity=partial(_start_at, _start), kinds=NUMBERS, dtypes=_ORDERED_DTYPES, samples=_truth_samples,
        result=lambda dtype: (_BOOL,), state=lambda dtype: (np.dtype(np.int32),), doc=f"Whether {_what} nonzero.",
    )  # fmt: skip
