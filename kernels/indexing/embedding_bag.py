"""Bags of rows of a table: embedding_bag sums each bag's rows, bag_tops finds whose element is the largest; gradients are added in a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.indices.error_reports import check_integers, check_range
from tritensor.kernels.parts.indices.rows_by_key import keys_of, numpy_add_rows, put_rows, watch_keys
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.llvm.passes.gather_rows import add_rows, max_rows
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops

_INT64 = np.dtype(np.int64)
_SUM = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float64"}
GATHERED = 1 << 15  # elements of a block of rows, which stay in the cache
LONG = 64  # bags longer than this are compared one by one, the others in rounds: the first of every bag, the second, ...


def _shape(name: str, weight: Any, index: Any, edges: Any, scale: Any, padding_idx: int | None) -> tuple[int, int]:
    """(bags, width)."""
    check_integers(name, index)
    if not dtypes.is_float(weight.dtype) or dtypes.of(weight.dtype).kind == "float8":
        raise DTypeError(f"{name}: weight is {dtypes.of(weight.dtype).name}; cast it to a float type")
    if len(weight.shape) != 2:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} is not (number of rows, width); give two dimensions")
    if len(index.shape) != 1:
        raise ShapeError(f"{name}: index {tuple(index.shape)} has {len(index.shape)} dimensions; give (indices,)")
    if len(edges.shape) != 1 or not edges.shape[0]:
        raise ShapeError(f"{name}: edges {tuple(edges.shape)} are not (bags + 1,)")
    if edges.dtype != _INT64:
        raise DTypeError(f"{name}: edges are {dtypes.of(edges.dtype).name}; cast them to int64")
    if scale is not None and (tuple(scale.shape) != tuple(index.shape) or scale.dtype != weight.dtype):
        raise ShapeError(
            f"{name}: scale {dtypes.of(scale.dtype).name}{tuple(scale.shape)}; give a number of weight's type for each index, {tuple(index.shape)}"
        )
    if padding_idx is not None and not 0 <= padding_idx < weight.shape[0]:
        raise IndexError(f"{name}: padding_idx {padding_idx} is out of range for {weight.shape[0]} rows")
    return edges.shape[0] - 1, weight.shape[1]


def shape(weight: Any, index: Any, edges: Any, scale: Any = None, *, padding_idx: int | None = None, length: int | None = None) -> Spec:
    return Spec(_shape("embedding_bag", weight, index, edges, scale, padding_idx), weight.dtype)


def _as_given(index: Any, length: int | None) -> Any:
    """The indices in rows of one bag each, as the caller may have given them: what is said of a bad one names its row and place."""
    return index if length is None else index.reshape((index.size // length, length))


# y[b, d] = sum of scale[i] weight[index[i], d] over the i from edges[b] to edges[b + 1] with index[i] != padding_idx
def reference(
    weight: np.ndarray, index: np.ndarray, edges: np.ndarray, scale: np.ndarray | None = None, *, padding_idx: int | None = None,
    length: int | None = None,
) -> np.ndarray:  # fmt: skip
    y = np.zeros((len(edges) - 1, weight.shape[1]), weight.dtype)
    for b in range(len(y)):
        for i in range(edges[b], edges[b + 1]):
            if index[i] != padding_idx:
                y[b] += weight[index[i]] if scale is None else scale[i] * weight[index[i]]
    return y


# w[b, d] = the first index[i] in bag b whose weight[index[i], d] is the largest; a NaN is the largest where it comes first and else is none; -1 in an empty bag
def tops_reference(
    weight: np.ndarray, index: np.ndarray, edges: np.ndarray, *, padding_idx: int | None = None, length: int | None = None
) -> np.ndarray:
    columns = np.arange(weight.shape[1])
    which = np.full((len(edges) - 1, weight.shape[1]), -1, np.int64)
    for b, best in enumerate(which):
        for row in index[edges[b] : edges[b + 1]]:
            if row != padding_idx:
                best[...] = np.where((best < 0) | (weight[row] > weight[best, columns]), row, best)
    return which


# On the CPU
def _bags(name: str, index: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, slice]:
    """To which bag each index belongs, the indices as int64, and which of them are in a bag at all."""
    lengths = np.diff(edges)
    if (lengths.size and int(lengths.min()) < 0) or int(edges[0]) < 0 or int(edges[-1]) > index.size:
        raise ArgumentError(f"{name}: edges {edges[:8].tolist()} ... have to rise from 0 to {index.size} at most")
    inside = slice(int(edges[0]), int(edges[-1]))
    return np.repeat(np.arange(lengths.size), lengths), index[inside].astype(np.int64, copy=False), inside


def _add_rows(
    target: np.ndarray, x: np.ndarray, scale: np.ndarray | None, to: np.ndarray, places: np.ndarray, skip: tuple[int, int]
) -> None:
    """target[to[i]] += scale[i] x[places[i]], but where to[i] is skip[0] or places[i] is skip[1]."""
    # machine code adds row by row without a sort; numpy without it groups equal rows first
    if not target.size or not to.size or add_rows(target, x, scale, to, places, skip):
        return
    kept = np.flatnonzero((to != skip[0]) & (places != skip[1]))
    rows = x[places[kept]].astype(target.dtype, copy=False)
    if scale is not None:
        rows = rows * scale[kept, None].astype(target.dtype, copy=False)
    numpy_add_rows(target[None], to[kept], rows[None])


def cpu(
    weight: np.ndarray, index: np.ndarray, edges: np.ndarray, scale: np.ndarray | None = None, *, padding_idx: int | None = None,
    length: int | None = None,
) -> np.ndarray:  # fmt: skip
    check_range("embedding_bag", _as_given(index, length), weight.shape[0], 0, negative=False)
    bag, places, inside = _bags("embedding_bag", index, edges)
    y = np.zeros((edges.size - 1, weight.shape[1]), dtypes.accumulator(weight.dtype))
    _add_rows(y, weight, None if scale is None else scale[inside], bag, places, (-1, -1 if padding_idx is None else padding_idx))
    return y.astype(weight.dtype, copy=False)


def weight_cpu_backward(
    g: np.ndarray, index: np.ndarray, edges: np.ndarray, scale: np.ndarray | None, weight_shape: tuple[int, ...], padding_idx: int | None
) -> np.ndarray:
    bag, places, inside = _bags("embedding_bag", index, edges)
    target = np.zeros(weight_shape, dtypes.accumulator(g.dtype))
    _add_rows(target, g, None if scale is None else scale[inside], places, bag, (-1 if padding_idx is None else padding_idx, -1))
    return target.astype(g.dtype, copy=False)


def scale_cpu_backward(g: np.ndarray, weight: np.ndarray, index: np.ndarray, edges: np.ndarray, padding_idx: int | None) -> np.ndarray:
    bag, places, inside = _bags("embedding_bag", index, edges)
    acc = dtypes.accumulator(g.dtype)
    found = np.zeros(index.size, acc)
    out, step = found[inside], max(GATHERED // max(weight.shape[1], 1), 1)
    for start in range(0, out.size, step):
        some = slice(start, start + step)
        up, rows = (x.take(at[some], 0).astype(acc, copy=False) for x, at in ((g, bag), (weight, places)))
        np.einsum("id,id->i", up, rows, out=out[some])
    if padding_idx is not None:
        out[places == padding_idx] = 0
    return found.astype(g.dtype, copy=False)


def tops_cpu(
    weight: np.ndarray, index: np.ndarray, edges: np.ndarray, *, padding_idx: int | None = None, length: int | None = None
) -> np.ndarray:
    check_range("embedding_bag", _as_given(index, length), weight.shape[0], 0, negative=False)
    bag, places, _ = _bags("bag_tops", index, edges)
    shape = edges.size - 1, weight.shape[1]
    best, which = np.empty(shape, dtypes.accumulator(weight.dtype)), np.full(shape, -1, np.int64)
    skip = -1 if padding_idx is None else padding_idx
    if which.size and places.size and not max_rows(best, which, weight, bag, places, (-1, skip)):
        kept = places != skip
        _numpy_tops(best, which, weight, bag[kept], places[kept])
    return which


def _numpy_tops(best: np.ndarray, which: np.ndarray, weight: np.ndarray, bag: np.ndarray, places: np.ndarray) -> None:
    starts = np.flatnonzero(np.diff(bag, prepend=-1))  # of bags that are not empty
    lengths = np.diff(starts, append=bag.size)
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths, bags = starts[by_length], lengths[by_length], bag[starts[by_length]]
    # rounds take a numpy call for each length; a long bag is cheaper by itself
    long = int(np.searchsorted(-lengths, -LONG))
    columns = np.arange(weight.shape[1])
    for k in range(long):
        at = places[starts[k] : starts[k] + lengths[k]]
        run = weight[at]
        seen = np.where(np.isnan(run), -np.inf, run).argmax(0)
        seen = np.where(np.isnan(run[0]), 0, seen)
        best[bags[k]], which[bags[k]] = run[seen, columns], at[seen]
    for r in range(int(lengths[long]) if long < lengths.size else 0):
        m = int(np.searchsorted(-lengths, -r))  # so many bags are longer than r
        at, bag_numbers = places[starts[long:m] + r], bags[long:m]
        run, old, before = weight[at], best[bag_numbers], which[bag_numbers]
        taken = (before < 0) | (run > old)
        best[bag_numbers], which[bag_numbers] = np.where(taken, run, old), np.where(taken, at[:, None], before)


# On the device
@triton.jit
def _tile(edges, count, bags, width, BM: tl.constexpr, BN: tl.constexpr):
    """This program's bags (BM,) and columns (BN,), which of them there are, and where each bag begins and ends."""
    program, blocks = tl.program_id(0), tl.cdiv(bags, BM)
    b = (program % blocks).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    d = (program // blocks).to(tl.int64) * BN + tl.arange(0, BN)  # (BN,)
    at = tl.maximum(tl.load(edges + b, mask=b < bags, other=0), 0)
    end = tl.minimum(tl.load(edges + b + 1, mask=b < bags, other=0), count)
    return b, d, (b < bags)[:, None] & (d < width)[None, :], at, end


# y[b, d] = sum of scale[i] x[keys[i], d] over the i from edges[b] to edges[b + 1] with keys[i] < rows
@triton.jit(do_not_specialize=["count", "bags", "rows"])
def _bags_kernel(y, x, keys, edges, scale, count, bags, rows, width, SUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    b, d, inside, at, end = _tile(edges, count, bags, width, BM, BN)
    acc = tl.zeros((BM, BN), SUM)
    while tl.max((at < end).to(tl.int32), 0) > 0:
        key = tl.load(keys + at, mask=at < end, other=rows)
        value = tl.load(x + key[:, None] * width + d[None, :], mask=(key < rows)[:, None] & inside, other=0).to(SUM)
        if scale is not None:
            value *= tl.load(scale + at, mask=key < rows, other=0).to(SUM)[:, None]
        acc += value
        at += 1
    tl.store(y + b[:, None] * width + d[None, :], acc.to(y.dtype.element_ty), mask=inside)


# which[b, d] = the first keys[i] < rows in bag b whose x[keys[i], d] is the largest, -1 where there is none
@triton.jit(do_not_specialize=["count", "bags", "rows"])
def _tops_kernel(which, x, keys, edges, count, bags, rows, width, TYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    b, d, inside, at, end = _tile(edges, count, bags, width, BM, BN)
    best, top = tl.zeros((BM, BN), TYPE), tl.full((BM, BN), -1, tl.int64)
    while tl.max((at < end).to(tl.int32), 0) > 0:
        key = tl.load(keys + at, mask=at < end, other=rows)
        good = (key < rows)[:, None] & inside
        value = tl.load(x + key[:, None] * width + d[None, :], mask=good, other=0).to(TYPE)
        taken = good & ((top < 0) | (value > best))
        best = tl.where(taken, value, best)
        top = tl.where(taken, key[:, None], top)
        at += 1
    tl.store(which + b[:, None] * width + d[None, :], top, mask=inside)


@triton.jit
def _bag_of(i, edges, bags, steps):
    """The last bag that begins at i or before, by halving; -1 where there is none."""
    low, high = i * 0, i * 0 + bags + 1
    for _ in range(steps):
        middle = (low + high) // 2
        before = (low < high) & (tl.load(edges + middle, mask=low < high, other=0) <= i)
        high = tl.where(before, high, middle)
        low = tl.where(before, middle + 1, low)
    return low - 1


# up[i, d] = scale[i] g[bag of i, d], 0 where i is in no bag
@triton.jit(do_not_specialize=["count", "bags", "steps"])
def _spread_kernel(up, g, edges, scale, count, bags, steps, width, BM: tl.constexpr, BN: tl.constexpr):
    program, blocks = tl.program_id(0), tl.cdiv(count, BM)
    i = (program % blocks).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    d = (program // blocks).to(tl.int64) * BN + tl.arange(0, BN)  # (BN,)
    bag = _bag_of(i, edges, bags, steps)
    good = (bag >= 0) & (bag < bags)
    mask = (i < count)[:, None] & (d < width)[None, :]
    value = tl.load(g + bag[:, None] * width + d[None, :], mask=mask & good[:, None], other=0).to(up.dtype.element_ty)
    if scale is not None:
        value *= tl.load(scale + i, mask=i < count, other=0).to(up.dtype.element_ty)[:, None]
    tl.store(up + i[:, None] * width + d[None, :], value, mask=mask)


# ds[i] = sum over d of g[bag of i, d] x[keys[i], d], 0 where keys[i] = rows or i is in no bag
@triton.jit(do_not_specialize=["count", "bags", "rows", "steps"])
def _products_kernel(ds, g, x, keys, edges, count, bags, rows, steps, width, SUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    bag = _bag_of(i, edges, bags, steps)
    key = tl.load(keys + i, mask=i < count, other=rows)
    good = (bag >= 0) & (bag < bags) & (key < rows)
    acc = tl.zeros((BM, BN), SUM)
    for start in range(0, width, BN):
        d = start + tl.arange(0, BN)
        mask = good[:, None] & (d < width)[None, :]
        up = tl.load(g + bag[:, None] * width + d[None, :], mask=mask, other=0).to(SUM)
        acc += up * tl.load(x + key[:, None] * width + d[None, :], mask=mask, other=0).to(SUM)
    tl.store(ds + i, tl.sum(acc, 1).to(ds.dtype.element_ty), mask=i < count)


def _blocks(rows: int, width: int) -> tuple[int, dict[str, Any]]:
    """The number of programs, and the tile of each."""
    columns = min(triton.next_power_of_2(max(width, 1)), 256)
    lines = max(256 // columns, 1)
    return triton.cdiv(rows, lines) * triton.cdiv(width, columns), {"BM": lines, "BN": columns}


def _keys(weight: CudaArray, index: CudaArray, padding_idx: int | None, watched: str = "", length: int | None = None) -> CudaArray:
    given = _as_given(index, length) if watched else index
    watching = watch_keys(watched, "embedding_bag", (given,), (0,), given.shape) if watched else None
    return keys_of((index,), (weight.shape[0],), index.shape, skip=padding_idx, wrap=False, watching=watching)


def forward(
    weight: CudaArray, index: CudaArray, edges: CudaArray, scale: CudaArray | None = None, *, padding_idx: int | None = None,
    length: int | None = None,
) -> CudaArray:  # fmt: skip
    (rows, width), bags = weight.shape, edges.size - 1
    keys = _keys(weight, index, padding_idx, "embedding_bag", length)
    y = allocate((bags, width), weight.dtype, weight.device)
    programs, tile = _blocks(bags, width)
    factors = None if scale is None else to_c_order(scale)
    launch(
        _bags_kernel, (programs,), y, to_c_order(weight), keys, to_c_order(edges), factors, index.size, bags, rows, width,
        SUM=getattr(tl, _SUM[dtypes.of(weight.dtype).name]), **tile,
    )  # fmt: skip
    return y


def tops_forward(
    weight: CudaArray, index: CudaArray, edges: CudaArray, *, padding_idx: int | None = None, length: int | None = None
) -> CudaArray:
    (rows, width), bags = weight.shape, edges.size - 1
    keys = _keys(weight, index, padding_idx, "bag_tops", length)
    which = allocate((bags, width), _INT64, weight.device)
    programs, tile = _blocks(bags, width)
    kind = tl.float64 if weight.dtype.itemsize == 8 else tl.float32
    launch(_tops_kernel, (programs,), which, to_c_order(weight), keys, to_c_order(edges), index.size, bags, rows, width, TYPE=kind, **tile)
    return which


def weight_backward(
    g: CudaArray, index: CudaArray, edges: CudaArray, scale: CudaArray | None, weight_shape: tuple[int, ...], padding_idx: int | None
) -> CudaArray:
    rows, width = weight_shape
    target = filled((1, rows, width), g.dtype, g.device, 0)
    up = allocate((1, index.size, width), dtypes.accumulator(g.dtype), g.device)
    keys = keys_of((index,), (rows,), index.shape, skip=padding_idx, wrap=False)
    programs, tile = _blocks(index.size, width)
    factors = None if scale is None else to_c_order(scale)
    launch(
        _spread_kernel, (programs,), up, to_c_order(g), to_c_order(edges), factors, index.size, edges.size - 1, edges.size.bit_length(), width, **tile,
    )  # fmt: skip
    put_rows(target, keys, up, add=True)
    return target.reshape((rows, width))


def scale_backward(g: CudaArray, weight: CudaArray, index: CudaArray, edges: CudaArray, padding_idx: int | None) -> CudaArray:
    rows, width = weight.shape
    keys = _keys(weight, index, padding_idx)
    ds = allocate((index.size,), g.dtype, g.device)
    _, tile = _blocks(index.size, width)
    launch(
        _products_kernel, (triton.cdiv(index.size, tile["BM"]),), ds, to_c_order(g), to_c_order(weight), keys, to_c_order(edges), index.size,
        edges.size - 1, rows, edges.size.bit_length(), width, SUM=getattr(tl, _SUM[dtypes.of(weight.dtype).name]), **tile,
    )  # fmt: skip
    return ds


# The gradients as ops: dweight[k] = sum of scale[i] g[bag of i] over the i with index[i] = k, dscale[i] = g[bag of i] . weight[index[i]]
def _spread(g: Any, index: Any, edges: Any, padding_idx: int | None) -> Any:
    """(n, width): g of the bag of each index, 0 where it counts in none."""
    n, bags = index._array.shape[0], edges._array.shape[0] - 1
    if not bags:
        return zero_tensor((n, g._array.shape[1]), g)
    places = ops.arange(start=0, end=n, step=1, dtype=_INT64, device=g.device)
    bag = ops.sub(ops.searchsorted(edges, places, right=True), 1)
    good = ops.logical_and(ops.ge(bag, 0), ops.lt(bag, bags))
    if padding_idx is not None:
        good = ops.logical_and(good, ops.ne(index, padding_idx))
    rows = ops.embedding(g, ops.clamp(bag, 0, bags - 1), padding_idx=None)
    return ops.where(ops.reshape(good, shape=(n, 1)), rows, 0.0)


def weight_rule(g: Any, index: Any, edges: Any, scale: Any, weight_shape: tuple[int, ...], padding_idx: int | None) -> Any:
    rows = _spread(g, index, edges, padding_idx)
    if scale is not None:
        rows = ops.mul(rows, ops.reshape(scale, shape=(index._array.shape[0], 1)))
    return ops.index_put(zero_tensor(weight_shape, g), rows, index, dims=(0,), front=False, accumulate=True)


def scale_rule(g: Any, weight: Any, index: Any, edges: Any, padding_idx: int | None) -> Any:
    rows = ops.mul(_spread(g, index, edges, padding_idx), ops.embedding(weight, index, padding_idx=None))
    return ops.sum(rows, dim=(1,), keepdim=False)


def _calls(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    edges = np.array([0, 3, 3, 7])
    return [
        (rng.standard_normal((7, 3)), np.array([1, 0, 6, 1, 1, 2, 5]), edges, None),
        (rng.standard_normal((6, 18)), rng.integers(0, 6, 9).astype(np.int32), edges, 2),  # two indices in no bag
        (rng.standard_normal((4, 2)), np.zeros(0, np.int64), np.array([0, 0]), None),
    ]


def samples(rng: np.random.Generator) -> list[Sample]:
    plain = [Sample(w, i, e, padding_idx=p) for w, i, e, p in _calls(rng)]
    scaled = [Sample(w, i, e, rng.standard_normal(i.shape), padding_idx=p) for w, i, e, p in _calls(rng)[:2]]
    return [*plain, *scaled, Sample(rng.standard_normal((5, 1)), rng.integers(0, 5, 90), np.array([0]), padding_idx=None)]


def sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal((10000, 64)), rng.integers(0, 10000, 16384), np.arange(0, 16385, 16), padding_idx=None)]


def work(weight: Any, index: Any, edges: Any, scale: Any = None, *, padding_idx: int | None = None, length: int | None = None) -> Work:
    n, bags, width = index.shape[0], edges.shape[0] - 1, weight.shape[1]
    read = index.dtype.itemsize + width * weight.dtype.itemsize + (0 if scale is None else weight.dtype.itemsize)
    return Work((1 if scale is None else 2) * n * width, n * read + bags * (8 + width * weight.dtype.itemsize))


def tops_work(weight: Any, index: Any, edges: Any, *, padding_idx: int | None = None, length: int | None = None) -> Work:
    width = weight.shape[1]
    return Work(0, index.shape[0] * (index.dtype.itemsize + width * weight.dtype.itemsize) + (edges.shape[0] - 1) * 8 * (1 + width))


op(
    "embedding_bag", reference, cpu=cpu, shape=shape, forward=forward, rule=(weight_rule, None, None, scale_rule),
    backward=(weight_backward, None, None, scale_backward), cpu_backward=(weight_cpu_backward, None, None, scale_cpu_backward),
    samples=samples, sizes=sizes, work=work, reports=True, condition="absolute", borrows=("index", "edges"),
    doc="Sums of the rows of weight that index[edges[b]:edges[b + 1]] names, each times its scale; the row `padding_idx` counts in none. "
    "`length`: how many indices each bag was given in, for what is said of a bad one.",
)  # fmt: skip
op(
    "bag_tops", tops_reference, cpu=tops_cpu, forward=tops_forward, differentiable=False, sizes=sizes,
    work=tops_work, reports=True,
    doc="Which row among those that index[edges[b]:edges[b + 1]] names has the largest element of each column, the first of equal ones; -1 in an empty bag.",
    shape=lambda weight, index, edges, *, padding_idx=None, length=None: Spec(_shape("bag_tops", weight, index, edges, None, padding_idx), _INT64),
    samples=lambda rng: [Sample(w, i, e, padding_idx=p) for w, i, e, p in _calls(rng)],
)  # fmt: skip
