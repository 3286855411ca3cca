"""Layer normalisation's backward over rows: the gradients of input, weight and bias in one pass, partial sums by program, and one launch that adds those."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.normalization.row_kernels import backward_rows, down, means_of, normal_tile, part_of, put_down, split, tile
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.configs.spaces import blocks_problem, blocks_space
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.launch_rules import cdiv, config_of, next_power_of_2
from tritensor.kernels.parts.reduction import add_pairs, upcast
from tritensor.kernels.parts.rows.row_tiles import align
from tritensor.kernels.parts.rows.unaligned_rows import body, c_ordered_rows, edges, phase_of, vector_length
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import powers, tile_problem, tunable

PARTS = 264  # programs that walk the rows, and partial sums: two for each multiprocessor of the largest GPU
LONGEST = 8192  # columns of which a program keeps the row, the weight and two sums in registers; a quarter of float64
TILE = 4096  # elements of a tile of several short rows
COLUMNS = 128  # columns of a partial sum of longer rows


class RowWalk(NamedTuple):
    """The walk over rows in one pass: a tile's rows and columns (a whole row), warps, rows loaded ahead, and the programs that share the rows."""

    BM: int
    BN: int
    warps: int
    stages: int
    parts: int


def _walk_problem(w: RowWalk, key: tuple[Any, ...] | None) -> str:
    if wrong := powers(w, None, ("stages", "parts")) or tile_problem(w.BM, w.BN):
        return wrong
    if min(w.stages, w.parts) < 1:
        return f"stages is {w.stages}, parts {w.parts}; each is at least 1"
    return f"BN {w.BN} holds no row of {key[1]}" if key is not None and key[1] > w.BN else ""


def _walk_space(key: tuple[Any, ...], default: RowWalk) -> list[RowWalk]:
    found = [default._replace(warps=w) for w in (4, 8, 16) if w != default.warps]
    found += [default._replace(BM=m) for m in (default.BM // 2, default.BM * 2) if m and m * default.BN <= 2 * TILE]
    found += [default._replace(stages=s) for s in (1, 2, 3, 4) if s != default.stages]
    found += [default._replace(parts=p) for p in (default.parts // 2, default.parts * 2) if p]
    return [w for w in found if not _walk_problem(w, key)]


def _parts_problem(b: Blocks, key: tuple[Any, ...] | None) -> str:
    return blocks_problem(b, key) or ("splits is 0; the number of partial sums is needed, 1 or more" if not b.splits else "")


tunable("layer_norm_gradients", RowWalk, _walk_space, _walk_problem)
tunable("layer_norm_weight", Blocks, blocks_space, _parts_problem)
tunable("layer_norm_join", Blocks, blocks_space, blocks_problem)


def row_walk(rows: int, n: int, dtype: np.dtype) -> RowWalk | None:
    """The rule's walk over (rows, n); None where a row, its weight and its sums do not fit a program's registers."""
    wide = dtype.itemsize == 8
    columns = max(next_power_of_2(n), 16)
    if columns > (LONGEST // 4 if wide else LONGEST):
        return None
    high = min(max((TILE // 2 if wide else TILE) // columns, 1), 16, next_power_of_2(rows))
    # few rows: shorter tiles keep all multiprocessors busy
    while high > 1 and cdiv(rows, high) < PARTS:
        high //= 2
    warps = max(4, min(16, high * columns // (256 if wide else 512)))
    most = PARTS if warps < 16 else PARTS // 2  # of 16 warps a multiprocessor holds one program
    return RowWalk(high, columns, warps, 2, max(min(most, cdiv(rows, high)), 1))


# dx = rstd (u - mean(u) - h mean(u h)) + more, h = (x - mean) rstd, u = g w; of the rows of this program dw = sum g h, db = sum g
@triton.jit(do_not_specialize=["rows", "n", "parts"])
def _gradients_kernel(
    x, weight, means, rstds, g, more, dx, dw, db, rows, n, parts,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)
    n = BN if FULL else n // ALIGN * ALIGN
    shift = phase_of(part, n, VECTOR)  # of all its rows, which lie `parts` apart
    HALF: tl.constexpr = dx.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    col, within = body(0, shift, n, BN, VECTOR)
    w_sums = tl.zeros((BM, BN), kind)
    b_sums = tl.zeros((BM, BN), kind)
    if weight is not None:
        w = tl.load(weight + (col - shift), mask=within, other=0.0)  # in its own type: of halves half the registers
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, n, VECTOR)
        w_edges = tl.zeros((BM, 2 * VECTOR), kind)
        b_edges = tl.zeros((BM, 2 * VECTOR), kind)
        if weight is not None:
            edge_w = tl.load(weight + (edge_col - shift), mask=on_edge, other=0.0)
    # a program's rows lie `parts` apart, a multiple of VECTOR, so that all of them begin at one phase
    for start in tl.range(part, rows, parts * BM, num_stages=STAGES):
        row = (start + tl.arange(0, BM) * parts).to(tl.int64)
        here = row < rows
        mean = means_of(means, row, here, kind)
        rstd = tl.load(rstds + row, mask=here, other=0.0)
        h, up = normal_tile(x, g, None, row, col, n, shift, within, here, mean, rstd, VECTOR)  # (BM, BN)
        w_sums += up * h
        if db is not None:
            b_sums += up
        if weight is not None:
            up *= upcast(w)[None, :]
        along, level = tl.reduce((up * h, up), 1, add_pairs) if means is not None else (tl.sum(up * h, axis=1), tl.zeros((BM,), kind))
        if VECTOR > 1:
            edge, edge_up = normal_tile(x, g, None, row, edge_col, n, shift, on_edge, here, mean, rstd, VECTOR)
            w_edges += edge_up * edge
            if db is not None:
                b_edges += edge_up
            if weight is not None:
                edge_up *= upcast(edge_w)[None, :]
            along += tl.sum(edge_up * edge, axis=1)
            if means is not None:
                level += tl.sum(edge_up, axis=1)
        along, level = part_of(along, n, HALF), part_of(level, n, HALF)
        put_down(dx, down(h, up, along, level, rstd), more, row, col, n, shift, here[:, None] & within[None, :], VECTOR)
        if VECTOR > 1:
            put_down(dx, down(edge, edge_up, along, level, rstd), more, row, edge_col, n, shift, here[:, None] & on_edge[None, :], VECTOR)
    # partial sums, not atomics: they are added in a fixed order, so that gradients repeat bit for bit
    at = part.to(tl.int64) * n - shift
    tl.store(dw + at + col, tl.sum(w_sums, axis=0), mask=within)
    if db is not None:
        tl.store(db + at + col, tl.sum(b_sums, axis=0), mask=within)
    if VECTOR > 1:
        tl.store(dw + at + edge_col, tl.sum(w_edges, axis=0), mask=on_edge)
        if db is not None:
            tl.store(db + at + edge_col, tl.sum(b_edges, axis=0), mask=on_edge)


# of rows too long for that: dw = sum over rows of g h, db = sum over rows of g, here the sums of every p-th block of rows
@triton.jit(do_not_specialize=["parts", "n"])
def _weight_kernel(
    x, means, rstds, g, dw, db, rows, n, parts, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    part, block = tl.program_id(0) % parts, tl.program_id(0) // parts
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    col = block.to(tl.int64) * BN + tl.arange(0, BN)
    w_sums = tl.zeros((BM, BN), kind)
    b_sums = tl.zeros((BM, BN), kind)
    for start in range(part * BM, rows, parts * BM):
        row = (start + tl.arange(0, BM)).to(tl.int64)
        here = row < rows
        mean = means_of(means, row, here, kind)
        rstd = tl.load(rstds + row, mask=here, other=0.0)
        h, u = normal_tile(x, g, None, row, col, n, 0, col < n, here, mean, rstd, 1)
        w_sums += u * h
        b_sums += u
    at = part.to(tl.int64) * n + col
    tl.store(dw + at, tl.sum(w_sums, axis=0), mask=col < n)
    if db is not None:
        tl.store(db + at, tl.sum(b_sums, axis=0), mask=col < n)


@triton.jit
def _added(sums, col, n, parts, BM: tl.constexpr, BN: tl.constexpr):
    """The sum over parts of (parts, n), at some columns."""
    total = tl.zeros((BM, BN), sums.dtype.element_ty)
    for start in range(0, parts, BM):
        part = (start + tl.arange(0, BM)).to(tl.int64)
        inside = (part < parts)[:, None] & (col < n)[None, :]
        total += tl.load(sums + part[:, None] * n + col[None, :], mask=inside, other=0.0)
    return tl.sum(total, axis=0)


# the gradients of weight and bias: the partial sums of all programs, added in the same order every time
@triton.jit(do_not_specialize=["parts", "n"])
def _join_kernel(dw, db, w_out, b_out, n, parts, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr):
    n = n // ALIGN * ALIGN
    col = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(w_out + col, _added(dw, col, n, parts, BM, BN).to(w_out.dtype.element_ty), mask=col < n)
    if b_out is not None:
        tl.store(b_out + col, _added(db, col, n, parts, BM, BN).to(b_out.dtype.element_ty), mask=col < n)


def _joined(dw: CudaArray, db: CudaArray | None, like: tuple[Any, Any], shape: tuple[int, ...]) -> tuple[CudaArray, CudaArray | None]:
    """Add partial sums (parts, n) into gradients of the types of `like`."""
    parts, n = dw.shape
    w_out = allocate(shape, like[0], dw)
    b_out = None if db is None else allocate(shape, like[1], dw)
    high, wide, _ = config_of("layer_norm_join", (parts, n, dw.dtype), Blocks(min(next_power_of_2(parts), 128), 16))
    launch(_join_kernel, (cdiv(n, wide),), dw, db, w_out, b_out, n, parts, BM=high, BN=wide, ALIGN=align(n))
    return w_out, b_out


def _partial_sums(g: CudaArray, x: CudaArray, mean: CudaArray | None, rstd: CudaArray, axes: int, bias: bool) -> tuple[CudaArray, Any]:
    """The partial sums of dw and db alone, in a pass of their own."""
    rows, n = split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    # few rows would leave most of a tall tile idle
    high = 16 if rows > 8 else 4
    rule = Blocks(high, COLUMNS, max(min(PARTS // max(cdiv(n, COLUMNS), 1), cdiv(rows, high)), 1))
    high, columns, parts = config_of("layer_norm_weight", (rows, n, x.dtype), rule)
    dw, db = allocate((parts, n), acc_type, x), allocate((parts, n), acc_type, x) if bias else None
    grid = (parts * cdiv(n, columns),)
    launch(_weight_kernel, grid, to_c_order(x), mean, rstd, to_c_order(g), dw, db, rows, n, parts, BM=high, BN=columns, ALIGN=align(n))
    return dw, db


def gradients(
    g: CudaArray, x: CudaArray, weight: CudaArray | None, mean: CudaArray | None, rstd: CudaArray, axes: int, needs: tuple[bool, bool, bool],
    like: tuple[Any, Any], more: CudaArray | None = None,
) -> tuple[CudaArray | None, CudaArray | None, CudaArray | None]:  # fmt: skip
    """dx, dw and db of layer normalisation (no `mean`: of the root mean square's), those that `needs` asks for; dw and db in the types of `like`.
    `more`, where given, is added to dx.

    All of them in one pass over x and g, of rows that a program holds; partial sums by a fixed number of programs, added in a fixed order.
    """
    rows, n = split(x.shape, axes)
    # nothing is summed over rows: the kernel without partial sums
    if not (needs[1] or needs[2]):
        return backward_rows(g, x, weight, mean, rstd, axes, tile(x, axes), more) if needs[0] else None, None, None
    tail, acc_type, rule = x.shape[len(x.shape) - axes :], dtypes.accumulator(x.dtype), row_walk(rows, n, x.dtype)
    # a row that registers do not hold beside its sums, or sums alone: these have a pass of their own
    if rule is None or not needs[0]:
        dx = backward_rows(g, x, weight, mean, rstd, axes, tile(x, axes), more) if needs[0] else None
        dw, db = _partial_sums(g, x, mean, rstd, axes, needs[2])
    else:
        on = config_of("layer_norm_gradients", (rows, n, x.dtype), rule)
        dx, given, up, beside = allocate(x.shape, x.dtype, x), to_c_order(x), to_c_order(g), None if more is None else to_c_order(more)
        vector = vector_length(n, *[c_ordered_rows(v, n) for v in (given, up, dx, beside) if v is not None])
        parts = max(on.parts // vector, 1) * vector  # so that all rows of a program begin at one phase
        dw, db = allocate((parts, n), acc_type, x), allocate((parts, n), acc_type, x) if needs[2] else None
        launch(
            _gradients_kernel, (parts if n else 0,), given, None if weight is None else to_c_order(weight), mean, rstd, up, beside, dx, dw, db,
            rows, n, parts, BM=on.BM, BN=on.BN, ALIGN=align(n), VECTOR=vector, STAGES=on.stages, FULL=n == on.BN,
            num_warps=on.warps,
        )  # fmt: skip
    w, b = _joined(dw, db, like, tail)
    return dx, w if needs[1] else None, b
