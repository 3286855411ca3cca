"""scatter_reduce: product, largest or smallest of what goes to one place along a dimension; ties share a gradient evenly, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.kernels.indexing.gathering import SUMS, fold_along, keyed, numpy_padded, padded, scatter_shape, targets, vector
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import assigned, to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.indices.flat_positions import at_least_1d, position_blocks, put_at, reached
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op, ops

HOW = {"prod": 0, "amax": 1, "amin": 2}
UFUNC = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@triton.jit
def _combined(a, b, HOW: tl.constexpr):
    """The product, the larger or the smaller of two tiles."""
    if HOW == 0:
        return a * b
    elif HOW == 1:
        return maths.maximum(a, b)
    else:
        return maths.minimum(a, b)


@triton.jit
def _lanes(keys, count, rows, width, columns, BM: tl.constexpr, BN: tl.constexpr):
    """This program's lanes: places in the sorted keys (BM,), their keys, whether a run starts there; slice and column of an element (BN,)."""
    program, row_blocks = tl.program_id(0), tl.cdiv(count, BM)
    p = (program % row_blocks).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    c = (program // row_blocks).to(tl.int64) * BN + tl.arange(0, BN)  # (BN,)
    key = tl.load(keys + p, mask=p < count, other=rows)
    before = tl.load(keys + p - 1, mask=(p > 0) & (p < count), other=-1)
    return p, key, (key < rows) & (key != before), c // width, c % width, (c < columns)[None, :]


# y[l, k, d] = fold of (INCLUDE: x[l, k, d] and) source[l, i, d] over the i with keys[i] = k; y holds x already
@triton.jit(do_not_specialize=["rows"])
def _fold_kernel(
    y, keys, order, source, count, rows, width, columns,
    HOW: tl.constexpr, INCLUDE: tl.constexpr, TYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    p, key, first, lead, d, inside = _lanes(keys, count, rows, width, columns, BM, BN)
    to = y + (lead[None, :] * rows + key[:, None]) * width + d[None, :]
    own = first[:, None] & inside  # (BM, BN)
    acc = tl.load(to, mask=own, other=0).to(TYPE)
    live = first
    k = 0
    while tl.max(live.to(tl.int32), 0) > 0:
        row = tl.load(order + p + k, mask=live, other=0)
        mask = live[:, None] & inside
        value = tl.load(source + (lead[None, :] * count + row[:, None]) * width + d[None, :], mask=mask, other=0).to(TYPE)
        acc = tl.where(mask, tl.where(INCLUDE | (k > 0), _combined(acc, value, HOW), value), acc)
        k += 1
        after = tl.load(keys + p + k, mask=live & (p + k < count), other=-1)
        live = live & (after == key)
    tl.store(to, acc.to(y.dtype.element_ty), mask=own)


@triton.jit
def _is_result(value, y):
    """Whether a value is the result; NaN is NaN."""
    return (value == y) | ((value != value) & (y != y))


@triton.jit
def _share(g, value, y, product, some, HOW: tl.constexpr):
    """The gradient of one element of a run: of a product, g times that of the others; else its share among the `some` elements that are y."""
    if HOW == 0:
        others = tl.where(value == 0, product, maths.div(product, tl.where(value == 0, 1.0, value)))
        alone = tl.where(value == 0, some == 1, some == 0)
        return tl.where(alone, g * others, 0.0)
    else:
        return tl.where(_is_result(value, y), maths.div(g, tl.maximum(some, 1.0)), 0.0)


# gx[l, k, d], gsource[l, i, d] = the gradients of the run that keys[i] = k names; gx holds g already, gsource zeros
@triton.jit(do_not_specialize=["rows"])
def _fold_backward_kernel(
    g, x, source, y, keys, order, gx, gsource, count, rows, width, columns,
    HOW: tl.constexpr, INCLUDE: tl.constexpr, TYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    p, key, first, lead, d, inside = _lanes(keys, count, rows, width, columns, BM, BN)
    at = (lead[None, :] * rows + key[:, None]) * width + d[None, :]
    own = first[:, None] & inside  # (BM, BN)
    up = tl.load(g + at, mask=own, other=0).to(TYPE)
    old = tl.load(x + at, mask=own, other=1).to(TYPE)
    result = tl.load(y + at, mask=own, other=0).to(TYPE)
    product = tl.full((BM, BN), 1, TYPE)  # of what is not 0
    some = tl.zeros((BM, BN), TYPE)  # how many are 0, or are the result
    if INCLUDE:
        if HOW == 0:
            product = tl.where(old == 0, product, old)
        some += tl.where((old == 0) if HOW == 0 else _is_result(old, result), 1.0, 0.0)
    live = first
    k = 0
    while tl.max(live.to(tl.int32), 0) > 0:
        row = tl.load(order + p + k, mask=live, other=0)
        mask = live[:, None] & inside
        value = tl.load(source + (lead[None, :] * count + row[:, None]) * width + d[None, :], mask=mask, other=1).to(TYPE)
        if HOW == 0:
            product *= tl.where(mask & (value != 0), value, 1.0)
        some += tl.where(mask & ((value == 0) if HOW == 0 else _is_result(value, result)), 1.0, 0.0)
        k += 1
        after = tl.load(keys + p + k, mask=live & (p + k < count), other=-1)
        live = live & (after == key)
    live = first
    k = 0
    while tl.max(live.to(tl.int32), 0) > 0:
        row = tl.load(order + p + k, mask=live, other=0)
        mask = live[:, None] & inside
        to = (lead[None, :] * count + row[:, None]) * width + d[None, :]
        value = tl.load(source + to, mask=mask, other=1).to(TYPE)
        tl.store(gsource + to, _share(up, value, result, product, some, HOW).to(gsource.dtype.element_ty), mask=mask)
        k += 1
        after = tl.load(keys + p + k, mask=live & (p + k < count), other=-1)
        live = live & (after == key)
    kept = _share(up, old, result, product, some, HOW) if INCLUDE else tl.zeros((BM, BN), TYPE)
    tl.store(gx + at, kept.to(gx.dtype.element_ty), mask=own)


def _runs(rows: tuple[int, int, int], keys: CudaArray) -> tuple[CudaArray, CudaArray, tuple[int, int, int, int], dict[str, Any], int]:
    """Sorted keys, where they came from, (count, rows, width, columns), the tile, and how many programs."""
    lead, count, width = rows
    columns = lead * width
    sorted_keys, order = sort_keys(keys, count.bit_length())
    block_columns = min(triton.next_power_of_2(columns), 256)
    block_rows = max(256 // block_columns, 1)
    programs = triton.cdiv(keys.size, block_rows) * triton.cdiv(columns, block_columns)
    return sorted_keys, order, (keys.size, count, width, columns), {"BM": block_rows, "BN": block_columns}, programs


def _forward(
    x: CudaArray, index: CudaArray, source: CudaArray, *, dim: int, reduce: str, include_self: bool = True, called: str = ""
) -> CudaArray:
    shape = x.shape
    x, index, source = vector(x), vector(index), vector(source)
    y = assigned(allocate(x.shape, x.dtype, x.device), x)
    if 0 in x.shape or 0 in index.shape:
        return y.reshape(shape)
    rows, keys = keyed("scatter_reduce", y, index, dim, True, called)
    sorted_keys, order, sizes, tile, programs = _runs(rows, keys)
    values = to_c_order(reached(source, index.shape))
    launch(
        _fold_kernel, (programs,), y, sorted_keys, order, values, *sizes,
        HOW=HOW[reduce], INCLUDE=bool(include_self), TYPE=getattr(tl, SUMS.get(dtypes.of(x.dtype).name, "int64")), **tile,
    )  # fmt: skip
    return y.reshape(shape)


def _backward(
    g: CudaArray, x: CudaArray, index: CudaArray, source: CudaArray, y: CudaArray, dim: int, reduce: str, include_self: bool
) -> tuple[Any, ...]:
    shapes = x.shape, source.shape
    g, x, index, source, y = (vector(a) for a in (g, x, index, source, y))
    gx = assigned(allocate(g.shape, g.dtype, g.device), g)
    read = filled(index.shape, g.dtype, g.device, 0)
    if not (0 in x.shape or 0 in index.shape):
        rows, keys = keyed("scatter_reduce", x, index, dim, False)
        sorted_keys, order, sizes, tile, programs = _runs(rows, keys)
        values = to_c_order(reached(source, index.shape))
        launch(
            _fold_backward_kernel, (programs,), to_c_order(g), to_c_order(x), values, to_c_order(y), sorted_keys, order, gx, read, *sizes,
            HOW=HOW[reduce], INCLUDE=bool(include_self), TYPE=getattr(tl, SUMS[dtypes.of(x.dtype).name]), **tile,
        )  # fmt: skip
    return gx.reshape(shapes[0]), None, padded(read, source.shape).reshape(shapes[1])


def _reference(
    x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, reduce: str, include_self: bool = True, called: str = ""
) -> np.ndarray:
    y, counted = np.array(x), np.full(x.shape, include_self)
    for to, at in targets(index, dim):
        y[to] = UFUNC[reduce](y[to], source[at]) if counted[to] else source[at]
        counted[to] = True
    return y


# On the CPU
def _identity(reduce: str, dtype: np.dtype) -> Any:
    """The number that changes nothing in a fold."""
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max


def _computed(x: np.ndarray) -> np.dtype:
    """The type to compute in; booleans as bytes, of which the product is `and`."""
    if x.dtype == np.bool_:
        return np.dtype(np.uint8)
    return dtypes.accumulator(x.dtype) if dtypes.is_float(x.dtype) else x.dtype


def _cpu(
    x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, reduce: str, include_self: bool = True, called: str = ""
) -> np.ndarray:
    y = np.array(x, _computed(x), order="C")
    # what changes nothing stands where something arrives, so that the fold begins with the first source
    if not include_self:
        put_at(called or "scatter_reduce", at_least_1d(y), at_least_1d(index), _identity(reduce, y.dtype), dim)
    with np.errstate(over="ignore", invalid="ignore"):
        fold_along(called or "scatter_reduce", UFUNC[reduce], y, index, source, dim)
    return y.astype(x.dtype, copy=False)


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, index: np.ndarray, source: np.ndarray, y: np.ndarray, dim: int, reduce: str, include_self: bool
) -> tuple[Any, ...]:
    kind = _computed(x)
    up, old, result = (np.ascontiguousarray(a, kind).reshape(-1) for a in (g, x, y))
    rows, named, given = at_least_1d(x), at_least_1d(index), at_least_1d(source)
    found = [at for _, at in position_blocks("scatter_reduce", rows.shape, named, dim)]
    at = np.concatenate(found) if found else np.zeros(0, np.int64)
    values = reached(given, named.shape).reshape(-1).astype(kind, copy=False)
    special = (values == 0) if reduce == "prod" else _is_result_numpy(values, result[at])
    some = np.bincount(at, special, up.size).astype(kind)  # how many are 0, or are the result
    product = np.ones(0, kind)
    if include_self:
        some += (old == 0) if reduce == "prod" else _is_result_numpy(old, result)
    with np.errstate(all="ignore"):
        if reduce == "prod":
            product = np.where(old == 0, 1, old) if include_self else np.ones_like(old)
            np.multiply.at(product, at, np.where(special, kind.type(1), values))
        gx = _numpy_share(up, old, result, product, some, reduce)
        if not include_self:
            gx = up.copy()
            gx[at] = 0
        picked = (product[at] if reduce == "prod" else product), some[at]
        gs = _numpy_share(up[at], values, result[at], *picked, reduce)
    gx, gs = (a.reshape(b.shape).astype(g.dtype, copy=False) for a, b in ((gx, x), (gs, index)))
    return gx, None, numpy_padded(gs, source.shape)


def _is_result_numpy(value: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`_is_result` on numpy arrays."""
    return np.asarray((value == y) | ((value != value) & (y != y)))


def _numpy_share(g: np.ndarray, value: np.ndarray, y: np.ndarray, product: np.ndarray, some: np.ndarray, reduce: str) -> np.ndarray:
    """`_share` on numpy arrays."""
    if reduce != "prod":
        return np.where(_is_result_numpy(value, y), g / np.maximum(some, 1), g.dtype.type(0))
    zero = value == 0
    others = np.where(zero, product, product / np.where(zero, g.dtype.type(1), value))
    return np.where(np.where(zero, some == 1, some == 0), g * others, g.dtype.type(0))


# The gradient as ops
def _rule(g: Any, x: Any, index: Any, source: Any, y: Any, dim: int, reduce: str, include_self: bool) -> tuple[Any, ...]:
    shape = tuple(index._array.shape)
    whole = tuple(source._array.shape)
    read = source if whole == shape else ops.index_view(source, index=tuple(slice(m) for m in shape))
    gradient = _product_rule if reduce == "prod" else _extreme_rule
    gx, gs = gradient(g, x, index, read, y, dim, reduce, include_self)
    if not include_self:
        gx = ops.scatter(g, index, ops.expand(zero_tensor((), g), shape=shape), dim=dim)
    return gx, None, gs if whole == shape else ops.pad_view(gs, shape=whole, index=tuple(slice(m) for m in shape))


def _is_result_tensor(value: Any, y: Any) -> Any:
    """`_is_result` on tensors."""
    return ops.logical_or(ops.eq(value, y), ops.logical_and(ops.ne(value, value), ops.ne(y, y)))


def _extreme_rule(g: Any, x: Any, index: Any, read: Any, y: Any, dim: int, reduce: str, include_self: bool) -> tuple[Any, Any]:
    """The largest or smallest: g is shared evenly among those that are the result."""
    kind = g._array.dtype
    of_x, of_source = _is_result_tensor(x, y), _is_result_tensor(read, ops.gather(y, index, dim=dim))
    some = ops.cast(of_x, dtype=kind) if include_self else zero_tensor(x._array.shape, g)
    share = ops.div(g, ops.maximum(ops.scatter_add(some, index, ops.cast(of_source, dtype=kind), dim=dim), 1.0))
    return ops.where(of_x, share, 0.0), ops.where(of_source, ops.gather(share, index, dim=dim), 0.0)


def _product_rule(g: Any, x: Any, index: Any, read: Any, y: Any, dim: int, reduce: str, include_self: bool) -> tuple[Any, Any]:
    """The product: g times the product of the others, y / value for what is not 0.

    A 0 among the factors: the product M of the rest where it is the only one; where there are two, M times the other, which is 0 but whose
    gradient is M (the second derivative); 0 where there are more.
    """
    kind = g._array.dtype
    zero_x, zero_s = ops.eq(x, 0), ops.eq(read, 0)
    nothing = zero_tensor(x._array.shape, g)
    counted = ops.cast(zero_x, dtype=kind) if include_self else nothing
    zeros = ops.scatter_add(counted, index, ops.cast(zero_s, dtype=kind), dim=dim)
    rest = ops.scatter_reduce(
        ops.where(zero_x, 1.0, x), index, ops.where(zero_s, 1.0, read), dim=dim, reduce="prod", include_self=include_self
    )
    sum_of_zeros = ops.scatter_add(ops.where(zero_x, x, 0.0) if include_self else nothing, index, ops.where(zero_s, read, 0.0), dim=dim)

    def gradient(up: Any, value: Any, zero: Any, y: Any, rest: Any, count: Any, total: Any) -> Any:
        others = ops.where(ops.eq(count, 1), 1.0, ops.where(ops.eq(count, 2), ops.sub(total, value), 0.0))
        return ops.mul(up, ops.where(zero, ops.mul(rest, others), ops.div(y, ops.where(zero, 1.0, value))))

    picked = [ops.gather(a, index, dim=dim) for a in (y, rest, zeros, sum_of_zeros)]
    gx = gradient(g, x, zero_x, y, rest, zeros, sum_of_zeros) if include_self else None
    return gx, gradient(ops.gather(g, index, dim=dim), read, zero_s, *picked)


def _shape(x: Any, index: Any, source: Any, *, dim: int, reduce: str, include_self: bool = True, called: str = "") -> Spec:
    if reduce not in HOW:
        raise ArgumentError(f"scatter_reduce: reduce is {reduce!r}; it is 'sum', 'prod', 'mean', 'amax' or 'amin'")
    kind = dtypes.of(x.dtype).kind
    if kind == "float8" or (kind == "complex" and reduce != "prod"):
        raise DTypeError(f"scatter_reduce: {dtypes.of(x.dtype).name} is not for {reduce!r}; cast it with .to(...)")
    return scatter_shape("scatter_reduce", x, index, source, dim)


def _samples(rng: np.random.Generator) -> list[Sample]:
    def draw(*shape: int) -> np.ndarray:
        return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))

    zeros = draw(2, 9)
    zeros[:, ::3] = 0.0
    found = []
    for reduce in HOW:
        found += [
            Sample(draw(2, 5), rng.integers(0, 5, (2, 7)), draw(2, 7), dim=1, reduce=reduce, include_self=True),
            Sample(draw(4, 5), rng.integers(0, 4, (3, 2)).astype(np.int32), draw(3, 5), dim=0, reduce=reduce, include_self=False),
        ]
    ties = rng.integers(-1, 2, (3, 8)).astype(np.float64)
    return [
        *found,
        Sample(draw(2, 5), np.zeros((2, 0), np.int64), np.zeros((2, 0)), dim=1, reduce="amax", include_self=False),
        Sample(draw(), np.array(0), draw(), dim=0, reduce="prod", include_self=True),
        Sample(draw(2, 4), rng.integers(0, 4, (2, 9)), zeros, dim=1, reduce="prod", include_self=True),
        Sample(ties[:, :4].copy(), rng.integers(0, 4, (3, 8)), ties, dim=1, reduce="amax", include_self=True, smooth=False),
    ]


op(
    "scatter_reduce", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward,
    samples=_samples, dtypes=("float16", "bfloat16", "float32", "float64", "int64", "bool"), reports=True,
    doc="A copy of x in which 'prod', 'amax' or 'amin' of source[.., j, ..], and of x unless include_self is False, stands at [.., index[.., j, ..], ..].",
)  # fmt: skip
