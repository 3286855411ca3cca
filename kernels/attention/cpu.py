"""Attention on the CPU: a few heads at a time, whose weights stay in the cache from their product to the next one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.kernels.attention.layout import mask_dims, result_strides
from tritensor.kernels.parts.cpu.blocks import SILENT
from tritensor.llvm import products, threads
from tritensor.llvm.loops import MANY, SHARED
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.simd import select
from tritensor.llvm.simd_functions import exp
from tritensor.ops.array import Array, empty

CACHE = 131072  # weights that numpy works on at a time
_FEW = 16384  # weights whose corner is kept between calls
ROWS = 128  # queries of a block where later keys are not seen: what lies right of the block is not computed


def _flat(x: np.ndarray, compute: np.dtype) -> np.ndarray:
    """(heads, rows, columns) of x (..., rows, columns), C-ordered, in the type to compute in."""
    return np.ascontiguousarray(x, compute).reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def _swapped(x: np.ndarray, compute: np.dtype) -> np.ndarray:
    """(heads, columns, rows): BLAS is slow on small transposed matrices."""
    return _flat(x.swapaxes(-1, -2), compute)


def _additive(mask: np.ndarray | None, batch: tuple[int, ...], compute: np.dtype) -> np.ndarray | None:
    """The mask as numbers to add, (heads or 1, L or 1, S or 1)."""
    if mask is None:
        return None
    found = np.where(mask, compute.type(0), compute.type(-np.inf)) if mask.dtype == np.bool_ else mask.astype(compute, copy=False)
    found = found.reshape((1,) * max(2 - found.ndim, 0) + found.shape)
    # one mask for all heads stays one: broadcasting it would read as much memory as the weights
    if math.prod(found.shape[:-2]) == 1:
        return found.reshape(1, *found.shape[-2:])
    return np.broadcast_to(found, (*batch, *found.shape[-2:])).reshape(math.prod(batch), *found.shape[-2:])


def _by_batches(batches: int, work: Callable[[int, int], None], weights: int) -> None:
    """work(low, high) of some of the first dimension each, by several threads where there are many weights."""
    # below it a second thread costs more to wake than it saves
    if weights < SHARED or threads.count() < 2:
        work(0, batches)
        return
    # each thread multiplies alone: BLAS's own threads would wait for one another in every small product
    with threads.single_threaded_blas:
        threads.share(work, batches)


def _lead(batch: tuple[int, ...]) -> tuple[int, int]:
    """Which dimension threads share, the first of several, and the heads of each of its elements."""
    axis = next((i for i, n in enumerate(batch[:-1]) if n != 1), max(len(batch) - 1, 0))
    return axis, math.prod(batch[axis + 1 :])


def _along(x: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    """x (..., rows, columns) from `low` to `high` along that dimension; a view."""
    return x[(slice(None),) * axis + (slice(low, high),)] if x.ndim > 2 else x


def _pieces(heads: int, queries: int, keys: int, causal: bool) -> Iterator[tuple[slice, slice, int]]:
    """(heads, queries, how many keys they see) of the blocks of so many heads."""
    # a block of queries sees no key behind its last one: cut into blocks, causal attention computes little more than half of the weights
    high = ROWS if causal and queries >= 2 * ROWS else max(queries, 1)
    # as many heads as keep their weights in the cache from the product that makes them to the one that reads them
    step = max(CACHE // max(min(high, queries) * keys, 1), 1)
    for first in range(0, heads, step):
        for top in range(0, queries, high):
            end = min(top + high, queries)
            yield slice(first, min(first + step, heads)), slice(top, end), min(end, keys) if causal else keys


def _block_of(mask: np.ndarray, heads: slice, rows: slice, seen: int) -> np.ndarray:
    return mask[
        heads if mask.shape[0] > 1 else slice(None),
        rows if mask.shape[1] > 1 else slice(None),
        slice(seen) if mask.shape[2] > 1 else slice(None),
    ]


# w = e^(w - m) / sum e^(w - m), m = max w, in place; 0 where m = -inf
def _softmax(p: Any, w: Any) -> None:
    top = p.largest(w)

    def power(x: Any, m: Any) -> tuple[Any, Any]:
        e = exp(x - m)
        return e, e

    (total,) = p.walk(power, w, select(top == -math.inf, 0.0, top), into=(w,), sums=1)
    p.each(lambda e, r: e * r, w, 1.0 / select(total == 0.0, 1.0, total), into=(w,))


# ds = w (ds - s), in place, s a number of each row
def _slope(p: Any, ds: Any, w: Any, s: Any) -> None:
    p.each(lambda d, w, s: w * (d - s), ds, w, s, into=(ds,))


_SOFTMAX, _SLOPE = RowProgram(_softmax), RowProgram(_slope)


def _by_machine(program: RowProgram, *arrays: np.ndarray) -> bool:
    """Run a program over the rows of windows (heads, rows, columns); where the last has one column, it is a number of each row."""
    heads, rows, columns = arrays[0].shape
    # few elements: numpy is done before machine code has its table of addresses
    if arrays[0].size < MANY:
        return False
    # without gaps all heads are rows of one matrix: one call in place of one a head
    if all(x.flags.c_contiguous for x in arrays):
        return program((heads * rows, 1, columns), _operands(arrays, columns))
    return all([program((rows, 1, columns), _operands([x[h] for x in arrays], columns)) for h in range(heads)])


def _operands(arrays: Sequence[np.ndarray], columns: int) -> list[Operand]:
    return [Operand(x, x.strides[-2] // x.itemsize, one="row" if x.shape[-1] == 1 != columns else "") for x in arrays]


def _normalise(w: np.ndarray) -> None:
    """w = e^w / sum e^w in place along the last axis; rows of -inf become 0."""
    if _by_machine(_SOFTMAX, w):
        return
    top = np.maximum.reduce(w, axis=-1, keepdims=True, initial=-np.inf)
    # a row that sees no key: -inf less -inf would be NaN, so that 0 is taken off
    top[top == -np.inf] = 0
    w -= top
    np.exp(w, out=w)
    total = np.add.reduce(w, axis=-1, keepdims=True)
    # and its weights stay 0 in place of 0 / 0
    total[total == 0] = 1
    w /= total


def cpu_forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *, scale: float, causal: bool = False
) -> tuple[Array, np.ndarray]:
    compute, batch = dtypes.accumulator(q.dtype), q.shape[:-2]
    queries, keys = q.shape[-2], k.shape[-2]
    added = _additive(mask, batch, compute)
    weights = np.empty((math.prod(batch), queries, keys), compute)
    y = np.asarray(empty((*batch, queries, v.shape[-1]), q.dtype, cpu, result_strides(q, k, v, mask)))
    corner = (_kept_corner if queries * keys <= _FEW else _corner)(queries, keys, compute) if causal else None
    axis, inner = _lead(batch)

    def part(low: int, high: int) -> None:
        qs, kt, vs = (form(_along(x, axis, low, high), compute) for form, x in ((_flat, q), (_swapped, k), (_flat, v)))
        qs = qs * compute.type(scale)
        onto = _along(y, axis, low, high)
        # heads that lie one after the other are written where they belong
        beside = not onto.flags.c_contiguous or y.dtype != compute
        made = np.empty((*qs.shape[:2], y.shape[-1]), compute) if beside else onto.reshape(*qs.shape[:2], y.shape[-1])
        first = low * inner
        with SILENT():
            for some, rows, seen in _pieces(len(qs), queries, keys, causal):
                there = slice(first + some.start, first + some.stop)
                w = weights[there, rows, :seen]
                products.matmul(qs[some, rows], kt[some, :, :seen], out=w)
                if corner is not None:
                    weights[there, rows, seen:] = 0
                    w += corner[rows, :seen]
                if added is not None:
                    w += _block_of(added, there, rows, seen)
                _normalise(w)
                products.matmul(w, vs[some, :seen], out=made[some, rows])
            if beside:
                onto[...] = made.reshape(onto.shape)

    _by_batches(batch[axis] if batch else 1, part, weights.size)
    return y, weights.astype(q.dtype, copy=False).reshape(*batch, queries, keys)


def _corner(queries: int, keys: int, compute: np.dtype) -> np.ndarray:
    """0 where query i sees key j <= i, -inf elsewhere."""
    return np.where(np.tri(queries, keys, dtype=bool), compute.type(0), compute.type(-np.inf))


_kept_corner = lru_cache(maxsize=64)(_corner)


def cpu_backward(
    g: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, y: np.ndarray, weights: np.ndarray, scale: float,
    causal: bool, needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    """With w the weights: dv = w^T g, ds = w (g v^T - sum g y), dq = scale ds k, dk = scale ds^T q; ds is the mask's gradient."""
    compute, batch = dtypes.accumulator(q.dtype), q.shape[:-2]
    queries, keys = q.shape[-2], k.shape[-2]
    heads, (axis, inner) = math.prod(batch), _lead(batch)
    new = np.zeros if causal or not queries else np.empty  # blocks of queries are added up
    dq, dk, dv = (make((heads, *x.shape[-2:]), compute) for make, x in ((np.empty, q), (new, k), (new, v)))
    masked = len(needs) > 3 and needs[3]
    kept = np.zeros((heads, queries, keys), compute) if masked else None

    def part(low: int, high: int) -> None:
        first, last = low * inner, high * inner
        up, own, vt, w_all, qs, ks = (
            form(_along(x, axis, low, high), compute) for form, x in ((_flat, g), (_flat, y), (_swapped, v), (_flat, weights), (_flat, q), (_flat, k))
        )  # fmt: skip
        qs = qs * compute.type(scale)
        # sum over keys of w dw is sum over features of g y: as long as a head is wide, not as there are keys
        sums = np.vecdot(up, own)[..., None]  # (heads, L, 1)
        room = np.empty(min(max(CACHE, queries * keys), w_all.size), compute)
        mine = dq[first:last], dk[first:last], dv[first:last]
        with SILENT():
            for some, rows, seen in _pieces(len(qs), queries, keys, causal):
                w, gs = w_all[some, rows, :seen], up[some, rows]
                ds = room[: w.size].reshape(w.shape)
                products.matmul(gs, vt[some, :, :seen], out=ds)
                if not _by_machine(_SLOPE, ds, w, sums[some, rows]):
                    ds -= sums[some, rows]
                    ds *= w
                if kept is not None:
                    kept[first:last][some, rows, :seen] = ds
                products.matmul(ds, ks[some, :seen], out=mine[0][some, rows])
                for d, a, b in ((mine[1], ds, qs[some, rows]), (mine[2], w, gs)):
                    # the only block writes its product where it belongs; others are added to what is there
                    if rows.start == 0 and seen == keys:
                        products.matmul(a.swapaxes(-1, -2), b, out=d[some])
                    else:
                        d[some, :seen] += products.matmul(a.swapaxes(-1, -2), b)
        mine[0][...] *= compute.type(scale)

    _by_batches(batch[axis] if batch else 1, part, heads * queries * keys)
    found = tuple(d.astype(x.dtype, copy=False).reshape(x.shape) for d, x in ((dq, q), (dk, k), (dv, v)))
    if kept is None:
        return (*found, None) if len(needs) > 3 else found
    return *found, _sum_to(kept.reshape(*batch, queries, keys), mask)


def _sum_to(d: np.ndarray, mask: Any) -> np.ndarray:
    """The gradient summed to the mask's shape."""
    dims = mask_dims(d, mask)
    return (d.sum(axis=dims, keepdims=True).reshape(mask.shape) if dims else d).astype(mask.dtype, copy=False)
