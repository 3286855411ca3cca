"""Running sums along a dim, forwards or backwards: each is the other's gradient."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.cpu.scanning import FEW, accumulated, backwards, running_sums
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ORDERED
from tritensor.kernels.parts.rows.recurrence import scan_kept, scan_shape
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, as_rows, load, place, row_tiles, row_tunable, store, tiles_for, unit
from tritensor.kernels.parts.rows.scan_parts import in_parts
from tritensor.llvm.passes.rows import running_sums as machine_sums
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, normal_dim, op, ops

row_tunable("cumsum")
TILE = 1024  # elements that one program scans at a time


# y_i = sum of x_j over j <= i (REVERSE: j >= i). Of rows in several parts: TOTALS, each part's sum alone; STARTS, from the running sums of those
@triton.jit(do_not_specialize=["columns", "length"])
def _cumsum_kernel(
    x, y, totals, rows, columns, length, x_strides, y_strides, KIND: tl.constexpr, REVERSE: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, TOTALS: tl.constexpr, STARTS: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    part, parts = tl.program_id(1), tl.num_programs(1)
    length = length // BN * BN  # whole steps: with that known, accesses are wide
    low = part * length
    tiles = tl.cdiv(tl.minimum(columns - low, length), BN)
    kept = (b * rows + row) * parts + part
    before = tl.zeros((BM,), KIND)
    if STARTS:
        other = part + 1 if REVERSE else part - 1
        before = tl.load(totals + kept + (other - part), mask=inside & (other >= 0) & (other < parts), other=0)
    held = tl.zeros((BM, BN), KIND)
    for t in range(tiles):
        start = low + ((tiles - 1 - t) * BN if REVERSE else t * BN)
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        value = load(x, b, row, col, x_strides, lanes, 0, X_UNIT).to(KIND)  # (BM, BN)
        if TOTALS:
            held += value
        else:
            sums = tl.cumsum(value, axis=1, reverse=REVERSE) + before[:, None]
            store(y, sums, b, row, col, y_strides, lanes, Y_UNIT)
            # The tile's last sum; `before += tl.sum(value)` trips an assertion in Triton 3.6's OptimizeThreadLocality.
            before = tl.sum(tl.where((col == (start if REVERSE else start + BN - 1))[None, :], sums, 0), axis=1)
    if TOTALS:
        tl.store(totals + kept, tl.sum(held, axis=1), mask=inside)


def scan_result(dtype: np.dtype) -> np.dtype:
    """The type of running sums and products: that of a float, int64 of integers and bools."""
    return dtype if dtypes.is_float(dtype) else dtypes.accumulator(dtype)


def _cumsum(x: np.ndarray, *, dim: int, reverse: bool = False) -> np.ndarray:
    """Running sum along dim (from its end with `reverse`); integers and bools in int64, floats in float64 by machine code, along other dims
    and without it 16-bit floats in float32, float32 in float64 but for runs of a few."""
    if x.ndim == 0:
        return x
    return np.flip(np.cumsum(np.flip(x, dim), axis=dim), dim) if reverse else np.cumsum(x, axis=dim)


def _cumsum_cpu(x: np.ndarray, *, dim: int, reverse: bool = False) -> np.ndarray:
    if x.ndim == 0:
        return np.asarray(x, scan_result(x.dtype)).copy()
    axis = normal_dim("cumsum", dim, x.ndim)
    way = backwards(x, axis) if reverse else x
    found = None
    # integers wrap around in accumulate as they should; many floats have machine code, or triangular products of short runs
    if x.dtype.kind in "fV" and x.size > FEW:
        way = np.ascontiguousarray(way)
        found = machine_sums(way) if axis == x.ndim - 1 else None
        if found is None:
            found = running_sums(way, axis)
    if found is None:
        found = accumulated(np.add, way, axis, scan_kept(x.dtype), scan_result(x.dtype))
    return np.ascontiguousarray(backwards(found, axis)) if reverse else np.ascontiguousarray(found)


def scan_rows(x: CudaArray, dim: int, reverse: bool, on: RowTiles) -> CudaArray:
    """Launch the kernel with a given tile: once, or where few rows are long for the parts' sums, the running sums of these, and the rest."""
    y = allocate(x.shape, scan_result(x.dtype), x)
    a, c = as_rows(x, dim), as_rows(y, dim)
    programs = on.batch * cdiv(on.rows, on.BM) if on.columns else 0
    parts, length = in_parts(programs, on.columns, on.BN, x.dtype)
    kept = scan_kept(x.dtype)
    totals = allocate((on.batch * on.rows, parts), kept, x) if parts > 1 else y
    shared = {"KIND": getattr(tl, dtypes.of(kept).name), "REVERSE": reverse, "X_UNIT": unit(a.strides), "Y_UNIT": unit(c.strides)}
    shared |= {"BM": on.BM, "BN": on.BN, "ALIGN": align(on.columns)}

    def run(sums: bool) -> None:
        launch(
            _cumsum_kernel, (programs, parts), a.array, y, totals, on.rows, on.columns, length, a.strides, c.strides, **shared, TOTALS=sums,
            STARTS=not sums and parts > 1,
        )  # fmt: skip

    if parts > 1:
        run(True)
        totals = scan_rows(totals, 1, reverse, row_tiles(totals.shape, 1, kept.itemsize, TILE, TILE))
    run(False)
    return y


def _forward(x: CudaArray, *, dim: int, reverse: bool = False) -> CudaArray:
    axis = normal_dim("cumsum", dim, len(x.shape))
    return scan_rows(x, axis, reverse, tiles_for("cumsum", x.shape, axis, x.dtype, limit=TILE, tile=TILE, size=scan_kept(x.dtype).itemsize))


def samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, backwards, and rows longer than a tile in either direction."""
    return [
        Sample(rng.normal(size=(5, 7)), dim=1, reverse=False),
        Sample(rng.normal(size=(6, 5)), dim=0, reverse=True),
        Sample(rng.normal(size=(3, 4, 5)), dim=1, reverse=False),
        Sample(rng.normal(size=(2, 1100)), dim=1, reverse=True),
        Sample(rng.normal(size=(1100, 2)), dim=0, reverse=False),
        Sample(rng.normal(size=(3, 0)), dim=1, reverse=False),
    ]


op(
    "cumsum", _cumsum, cpu=_cumsum_cpu, forward=_forward,
    dtypes=("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"), samples=samples, condition="absolute",
    shape=lambda x, *, dim, reverse=False: scan_shape("cumsum", (*ORDERED, "complex"), x, dim, scan_result(x.dtype)),
    rule=(lambda g, dim, reverse: ops.cumsum(g, dim=dim, reverse=not reverse),),
    backward=(lambda g, dim, reverse: _forward(g, dim=dim, reverse=not reverse),),
    cpu_backward=(lambda g, dim, reverse: _cumsum_cpu(g, dim=dim, reverse=not reverse),),
)  # fmt: skip
