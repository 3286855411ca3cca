"""Layer normalisation's kernels over rows, centred or not: a row in registers or walked in tiles."""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.half_precision import functions as half
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import upcast
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, row_tunable, tiles_for
from tritensor.kernels.parts.rows.unaligned_rows import body, c_ordered_rows, edges, last, phase_of, place, programs, starts, vector_length
from tritensor.ops.array import CudaArray

row_tunable("layer_norm")


@triton.jit
def row_tile(x, row, col, n, shift, inside, VECTOR: tl.constexpr):
    """A tile of a C-ordered (rows, n), in float32 or wider, 0 outside. Columns count from `shift` before the row: see parts/rows/unaligned_rows.py."""
    return upcast(tl.load(x + _at(row, col, n, shift, VECTOR), mask=inside, other=0.0))


@triton.jit
def _at(row, col, n, shift, VECTOR: tl.constexpr):
    first = row * n if VECTOR == 1 else starts(row, n, shift, VECTOR)
    return first[:, None] + col[None, :]


@triton.jit
def store_tile(y, value, row, col, n, shift, inside, VECTOR: tl.constexpr):
    tl.store(y + _at(row, col, n, shift, VECTOR), value.to(y.dtype.element_ty), mask=inside)


# of x + added as it is rounded to their type
@triton.jit
def _sum_tile(x, added, row, col, n, shift, inside, VECTOR: tl.constexpr):
    value = row_tile(x, row, col, n, shift, inside, VECTOR)
    if added is not None:
        value = upcast((value + row_tile(added, row, col, n, shift, inside, VECTOR)).to(x.dtype.element_ty))
    return value


@triton.jit
def _vector(w, col, shift, within):
    return upcast(tl.load(w + (col - shift), mask=within, other=0.0))[None, :]


@triton.jit
def part_of(total, n, HALF: tl.constexpr):
    """total / n."""
    return half.div(total, n.to(tl.float32)) if HALF else maths.div(total, n)


@triton.jit
def _affine(value, rstd, weight, bias, col, shift, within):
    """Centred values as results: their share of the deviation, times weight, plus bias."""
    out = value * rstd[:, None]
    if weight is not None:
        out *= _vector(weight, col, shift, within)
    if bias is not None:
        out += _vector(bias, col, shift, within)
    return out


@triton.jit
def _less(value, mean, inside):
    """A tile less one number a row, 0 outside."""
    return tl.where(inside, value - mean[:, None], 0.0)


@triton.jit
def _total(value, edge, VECTOR: tl.constexpr):
    """The sum of a row's tile and of its edges."""
    total = tl.sum(value, axis=1)
    if VECTOR > 1:
        total += tl.sum(edge, axis=1)
    return total


@triton.jit
def _mean(total, n, HALF: tl.constexpr):
    """total / n; of a constant row of 16 bits, whose sum is exact, the constant: what the quick division left is divided once more."""
    mean = part_of(total, n, HALF)
    if HALF:
        mean += part_of(tl.fma(-mean, n.to(tl.float32) + tl.zeros_like(mean), total), n, HALF)
    return mean


# What roundings of its sum left of a mean that is large beside the deviations v from it, r = mean v: they would be those of a constant row. And the sum of
# squares without it, sum (v - r)^2 = sum v^2 - r sum v. A mean that is small beside them keeps its digits.
@triton.jit
def _rest(left, squares, mean, n, HALF: tl.constexpr):
    rest = tl.where(mean * mean * n > squares, part_of(left, n, HALF), 0.0)
    squares -= rest * left
    return rest, tl.where(squares < 0, 0.0, squares)


@triton.jit
def _walked_moments(
    x, added, edge, row, here, n, shift, edge_inside, CENTRED: tl.constexpr, HALF: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    """A row that is walked: its edges less the mean, the mean, and the sum of squares about it; about 0 where it is not centred."""
    kind: tl.constexpr = edge.dtype
    mean = tl.zeros((BM,), kind)
    sums = tl.zeros((BM, BN), kind)
    if CENTRED:
        for start in range(0, last(shift, n, VECTOR), BN):
            col, within = body(start, shift, n, BN, VECTOR)
            sums += _sum_tile(x, added, row, col, n, shift, here[:, None] & within[None, :], VECTOR)
        mean = part_of(_total(sums, edge, VECTOR), n, HALF)
        edge = _less(edge, mean, edge_inside)
        sums = tl.zeros((BM, BN), kind)
    squares = tl.zeros((BM, BN), kind)
    for start in range(0, last(shift, n, VECTOR), BN):
        col, within = body(start, shift, n, BN, VECTOR)
        inside = here[:, None] & within[None, :]
        value = _less(_sum_tile(x, added, row, col, n, shift, inside, VECTOR), mean, inside)
        squares += value * value
        if CENTRED:
            sums += value
    total = _total(squares, edge * edge, VECTOR)
    if CENTRED:
        rest, total = _rest(_total(sums, edge, VECTOR), total, mean, n, HALF)
        edge, mean = _less(edge, rest, edge_inside), mean + rest
    return edge, mean, total


# y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b; without `means` the mean is taken to be 0; with `added` of x + added, which goes to `summed`
@triton.jit(do_not_specialize=["rows", "n"])
def _forward_kernel(
    x, added, weight, bias, y, summed, means, rstds, rows, n, eps,
    WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, VECTOR: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    # a divisor that the compiler knows keeps masked accesses wide; a row as long as the tile needs no mask along it
    _, row, here = place(rows, BM, True, VECTOR)
    n = BN if FULL else n // ALIGN * ALIGN
    shift = phase_of(tl.program_id(0), n, VECTOR)
    HALF: tl.constexpr = y.dtype.element_ty.primitive_bitwidth == 16
    CENTRED: tl.constexpr = means is not None
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    edge_col, on_edge = edges(shift, n, VECTOR)
    edge_inside = here[:, None] & on_edge[None, :]
    edge = tl.zeros((BM, 2 * VECTOR), kind)
    mean = tl.zeros((BM,), kind)
    if VECTOR > 1:
        edge = _sum_tile(x, added, row, edge_col, n, shift, edge_inside, VECTOR)
        if summed is not None:
            store_tile(summed, edge, row, edge_col, n, shift, edge_inside, VECTOR)
    # a row that registers hold is read once, a longer one three times: for the mean, for the deviations, for the result
    if WHOLE:
        col, within = body(0, shift, n, BN, VECTOR)
        inside = here[:, None] & within[None, :]
        value = _sum_tile(x, added, row, col, n, shift, inside, VECTOR)  # (BM, BN)
        if summed is not None:
            store_tile(summed, value, row, col, n, shift, inside, VECTOR)
        if CENTRED:
            mean = _mean(_total(value, edge, VECTOR), n, HALF)
            value, edge = _less(value, mean, inside), _less(edge, mean, edge_inside)
        total = _total(value * value, edge * edge, VECTOR)
        # of 16 bits the sum is exact and _mean has the constant already
        if CENTRED and not HALF:
            rest, total = _rest(_total(value, edge, VECTOR), total, mean, n, HALF)
            value, edge, mean = _less(value, rest, inside), _less(edge, rest, edge_inside), mean + rest
    else:
        edge, mean, total = _walked_moments(x, added, edge, row, here, n, shift, edge_inside, CENTRED, HALF, BM, BN, VECTOR)
    rstd = maths.rsqrt(part_of(total, n, HALF) + eps.to(kind))
    if WHOLE:
        store_tile(y, _affine(value, rstd, weight, bias, col, shift, within), row, col, n, shift, inside, VECTOR)
    else:
        for start in range(0, last(shift, n, VECTOR), BN):
            col, within = body(start, shift, n, BN, VECTOR)
            inside = here[:, None] & within[None, :]
            value = _sum_tile(x, added, row, col, n, shift, inside, VECTOR)
            if summed is not None:
                store_tile(summed, value, row, col, n, shift, inside, VECTOR)
            value -= mean[:, None]
            store_tile(y, _affine(value, rstd, weight, bias, col, shift, within), row, col, n, shift, inside, VECTOR)
    if VECTOR > 1:
        store_tile(y, _affine(edge, rstd, weight, bias, edge_col, shift, on_edge), row, edge_col, n, shift, edge_inside, VECTOR)
    if means is not None:
        tl.store(means + row, mean, mask=here)
    tl.store(rstds + row, rstd, mask=here)


@triton.jit
def normal_tile(x, g, weight, row, col, n, shift, within, here, mean, rstd, VECTOR: tl.constexpr):
    """The normalised values h and the gradient u that arrives at them, tiles (BM, BN), 0 outside."""
    inside = here[:, None] & within[None, :]
    h = tl.where(inside, (row_tile(x, row, col, n, shift, inside, VECTOR) - mean[:, None]) * rstd[:, None], 0.0)
    u = row_tile(g, row, col, n, shift, inside, VECTOR)
    if weight is not None:
        u *= _vector(weight, col, shift, within)
    return h, u


@triton.jit
def means_of(means, row, here, KIND: tl.constexpr):
    if means is not None:
        mean = tl.load(means + row, mask=here, other=0.0)
    else:
        mean = tl.zeros_like(row).to(KIND)
    return mean


# dx = rstd (u - mean(u) - h mean(u h)) + more, h = (x - mean) rstd, u = g w; without `means` dx = rstd (u - h mean(u h)) + more
@triton.jit(do_not_specialize=["n"])
def _backward_kernel(
    x, weight, means, rstds, g, more, dx, rows, n, WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, VECTOR: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    _, row, here = place(rows, BM, True, VECTOR)
    n = BN if FULL else n // ALIGN * ALIGN
    shift = phase_of(tl.program_id(0), n, VECTOR)
    HALF: tl.constexpr = dx.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    mean = means_of(means, row, here, kind)
    rstd = tl.load(rstds + row, mask=here, other=0.0)
    products = tl.zeros((BM,), kind)
    sums = tl.zeros((BM,), kind)
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, n, VECTOR)
        edge, edge_up = normal_tile(x, g, weight, row, edge_col, n, shift, on_edge, here, mean, rstd, VECTOR)
        products = tl.sum(edge_up * edge, axis=1)
        sums = tl.sum(edge_up, axis=1)
    if WHOLE:
        col, within = body(0, shift, n, BN, VECTOR)
        h, u = normal_tile(x, g, weight, row, col, n, shift, within, here, mean, rstd, VECTOR)
        products += tl.sum(u * h, axis=1)
        # the root mean square has no mean whose gradient would be taken off
        if means is not None:
            sums += tl.sum(u, axis=1)
    else:
        all_products = tl.zeros((BM, BN), kind)
        all_sums = tl.zeros((BM, BN), kind)
        for start in range(0, last(shift, n, VECTOR), BN):
            col, within = body(start, shift, n, BN, VECTOR)
            h, u = normal_tile(x, g, weight, row, col, n, shift, within, here, mean, rstd, VECTOR)
            all_products += u * h
            all_sums += u
        products += tl.sum(all_products, axis=1)
        sums += tl.sum(all_sums, axis=1)
    along = part_of(products, n, HALF)
    level = part_of(sums, n, HALF) if means is not None else sums * 0.0
    if WHOLE:
        put_down(dx, down(h, u, along, level, rstd), more, row, col, n, shift, here[:, None] & within[None, :], VECTOR)
    else:
        for start in range(0, last(shift, n, VECTOR), BN):
            col, within = body(start, shift, n, BN, VECTOR)
            h, u = normal_tile(x, g, weight, row, col, n, shift, within, here, mean, rstd, VECTOR)
            put_down(dx, down(h, u, along, level, rstd), more, row, col, n, shift, here[:, None] & within[None, :], VECTOR)
    if VECTOR > 1:
        put_down(dx, down(edge, edge_up, along, level, rstd), more, row, edge_col, n, shift, here[:, None] & on_edge[None, :], VECTOR)


# a tile of dx, and what else arrives at x, before it is rounded
@triton.jit
def put_down(dx, value, more, row, col, n, shift, inside, VECTOR: tl.constexpr):
    if more is not None:
        value += row_tile(more, row, col, n, shift, inside, VECTOR)
    store_tile(dx, value, row, col, n, shift, inside, VECTOR)


@triton.jit
def down(h, u, along, level, rstd):
    return (u - level[:, None] - h * along[:, None]) * rstd[:, None]


def split(shape: tuple[int, ...], axes: int) -> tuple[int, int]:
    """(rows, elements of a row)."""
    k = len(shape) - axes
    return math.prod(shape[:k]), math.prod(shape[k:])


def forward_rows(
    x: CudaArray, weight: CudaArray | None, bias: CudaArray | None, eps: float, axes: int, on: RowTiles, centred: bool = True,
    added: CudaArray | None = None, summed: CudaArray | None = None,
) -> tuple[CudaArray, CudaArray | None, CudaArray]:  # fmt: skip
    """Launch the forward kernel with a given tile: the result, means and 1 / sqrt(var + eps); not `centred`, there are no means, and all counts from 0.

    With `added`, of x's shape, it is x + added that is normalised; the sum goes to `summed`, in C order.
    """
    y = allocate(x.shape, x.dtype, x)
    rows, n = split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    lead = x.shape[: len(x.shape) - axes]
    means, rstds = allocate(lead, acc_type, x) if centred else None, allocate(lead, acc_type, x)
    w, b = (None if v is None else to_c_order(v) for v in (weight, bias))
    given, other = to_c_order(x), None if added is None else to_c_order(added)
    vector = vector_length(n, *[c_ordered_rows(v, n) for v in (given, y, other, summed) if v is not None])
    launch(
        _forward_kernel, (cdiv(rows, on.BM * vector) * vector,), given, other, w, b, y, summed, means, rstds,
        rows, n, np.float64(eps), WHOLE=on.whole, BM=on.BM, BN=on.BN, ALIGN=align(n), VECTOR=vector, FULL=on.full, num_warps=on.warps,
    )  # fmt: skip
    return y, means, rstds


def tile(x: CudaArray, axes: int) -> RowTiles:
    """The tile of (rows, elements of a row)."""
    return tiles_for("layer_norm", split(x.shape, axes), 1, x.dtype)


def backward_rows(
    g: CudaArray, x: CudaArray, weight: CudaArray | None, mean: CudaArray | None, rstd: CudaArray, axes: int, on: RowTiles,
    more: CudaArray | None = None,
) -> CudaArray:  # fmt: skip
    """Launch the kernel of dx with a given tile; `more`, where given, is added to it."""
    rows, n = split(x.shape, axes)
    dx = allocate(x.shape, x.dtype, x)
    given, up, beside = to_c_order(x), to_c_order(g), None if more is None else to_c_order(more)
    vector = vector_length(n, *[c_ordered_rows(v, n) for v in (given, up, dx, beside) if v is not None])
    launch(
        _backward_kernel, (programs(on, vector),), given, None if weight is None else to_c_order(weight), mean, rstd, up, beside, dx,
        rows, n, WHOLE=on.whole, BM=on.BM, BN=on.BN, ALIGN=align(n), VECTOR=vector, FULL=on.full, num_warps=on.warps,
    )  # fmt: skip
    return dx
