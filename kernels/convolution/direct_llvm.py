"""Convolution on the CPU without columns: machine code that keeps a tile of results in registers, for processors with 32 vector registers."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.convolution.llvm_types import WIDTH, Kind, kind_in, pointer
from tritensor.kernels.convolution.plans import Plan, table_of
from tritensor.llvm import compiler, threads
from tritensor.llvm.loop_nest import LoopNest

ROWS, VECTORS = 8, 3  # of a tile: 24 registers of sums, 3 of cells, 1 of weights
_CHUNK = 1 << 20  # bytes of images that are read again for each tile of output channels: they stay in the cache
_ALONE = 1 << 22  # products below which a second thread does not pay
_DEEP = 150  # cells that a result sums from which on padded copies (tiles_llvm.py), whose lanes need no masks, pay
_FEW = 16  # output channels below which they do as well: their tile has fewer rows
_POINTERS = {"x", "w", "bias", "y", "cell", "mask_row", "x_at", "y_at", "column", "valid", "stored"}
_PARAMETERS = (
    "x", "w", "bias", "y", "blocks", "tiles", "taps", "rows", "y_c", "cell", "mask_row", "x_at", "y_at", "column", "valid", "stored",
)  # fmt: skip
_SUMS = [(r, v) for r in range(ROWS) for v in range(VECTORS)]


def _output_channels(nest: LoopNest, k: Kind) -> None:
    """The weights of block %b, and for each of its channels: its number, its bias in every lane, a mask that says whether it is there."""
    nest.lines += [
        f"  %row0 = mul i64 %b, {ROWS}",
        "  %part = mul i64 %row0, %taps",
        f"  %weights = getelementptr {k.number}, ptr %w, i64 %part",
    ]
    for r in range(ROWS):
        if r:
            nest.lines.append(f"  %row{r} = add i64 %row0, {r}")
        nest.lines.append(f"  %there{r} = icmp ult i64 %row{r}, %rows")
        nest.load_element(f"bias{r}", k.number, "%bias", f"%row{r}", k.item)
        nest.lines += [*k.spread(f"bias{r}", f"start{r}"), f"  %there{r}.0 = insertelement {k.lanes} poison, i1 %there{r}, i32 0"]
        nest.lines.append(f"  %row_mask{r} = shufflevector {k.lanes} %there{r}.0, {k.lanes} poison, <{k.width} x i32> zeroinitializer")


def _add_tap(nest: LoopNest, k: Kind) -> None:
    """The sums with tap %k: its weights, one for each channel, times the vectors of cells that it reads."""
    nest.load_element("step", "i64", "%cell", "%k", 8)
    nest.load_element("which", "i64", "%mask_row", "%k", 8)
    for v in range(VECTORS):
        nest.load_element(f"bits{v}", f"i{k.width}", f"%masks{v}", "%which", k.width // 8)
        nest.lines += [
            f"  %mask{v} = bitcast i{k.width} %bits{v} to {k.lanes}",
            f"  %at{v} = getelementptr i8, ptr %image{v}, i64 %step",
            f"  %x{v} = call {k.vector} @llvm.masked.load.{k.name}.p0(ptr %at{v}, i32 {k.item}, {k.lanes} %mask{v}, {k.vector} zeroinitializer)",
        ]
    nest.lines.append(f"  %k.row = mul i64 %k, {ROWS}")
    for r in range(ROWS):
        nest.lines.append(f"  %k{r} = add i64 %k.row, {r}")
        nest.load_element(f"w{r}", k.number, "%weights", f"%k{r}", k.item)
        nest.lines += k.spread(f"w{r}", f"a{r}")
        for v in range(VECTORS):
            nest.lines.append(
                f"  %s{r}_{v}.new = call {k.vector} @llvm.fma.{k.name}({k.vector} %a{r}, {k.vector} %x{v}, {k.vector} %s{r}_{v})"
            )


def _store_sums(nest: LoopNest, k: Kind) -> None:
    """The sums to where they belong in y."""
    for v in range(VECTORS):
        nest.load_element(f"to{v}", "i64", "%y_at", f"%v{v}", 8)
        nest.load_element(f"held{v}", f"i{k.width}", "%stored", f"%column{v}", k.width // 8)
        nest.lines.append(f"  %lanes{v} = bitcast i{k.width} %held{v} to {k.lanes}")
    for r, v in _SUMS:
        nest.offset_pointer(f"onto{r}_{v}", "%y", (f"%row{r}", "%y_c"), (f"%to{v}", "1"))
        nest.lines += [
            f"  %both{r}_{v} = and {k.lanes} %lanes{v}, %row_mask{r}",
            f"  call void @llvm.masked.store.{k.name}.p0({k.vector} %s{r}_{v}.new, ptr %onto{r}_{v}, i32 {k.item}, {k.lanes} %both{r}_{v})",
        ]


@functools.cache
def _function(dtype: np.dtype) -> Any:
    """y[o, v] = bias[o] + sum over k of w[o, k] x[cell[k] + v] for tiles of ROWS output channels o and VECTORS vectors v; w as (blocks, taps, ROWS)."""
    k, nest = kind_in(dtype, 64), LoopNest()
    with nest.loop("b", "%blocks"):
        _output_channels(nest, k)
        with nest.loop("q", "%tiles"):
            nest.lines.append(f"  %v0 = mul i64 %q, {VECTORS}")
            for v in range(VECTORS):
                if v:
                    nest.lines.append(f"  %v{v} = add i64 %v0, {v}")
                nest.load_element(f"from{v}", "i64", "%x_at", f"%v{v}", 8)
                nest.load_element(f"column{v}", "i64", "%column", f"%v{v}", 8)
                nest.lines += [
                    f"  %image{v} = getelementptr i8, ptr %x, i64 %from{v}",
                    f"  %masks{v} = getelementptr i{k.width}, ptr %valid, i64 %column{v}",
                ]
            with nest.loop("k", "%taps", **{f"s{r}_{v}": (k.vector, f"%start{r}") for r, v in _SUMS}):
                _add_tap(nest, k)
            _store_sums(nest, k)
    declared = [
        f"declare {k.vector} @llvm.masked.load.{k.name}.p0(ptr, i32, {k.lanes}, {k.vector})",
        k.fma,
        f"declare void @llvm.masked.store.{k.name}.p0({k.vector}, ptr, i32, {k.lanes})",
    ]
    return nest.compile(_PARAMETERS, _POINTERS, declared)


class Vectors(NamedTuple):
    """The vectors of some images, as many as tiles have: where they lie in x and y (bytes), and which of an image's they are; then the taps'."""

    x_at: np.ndarray
    y_at: np.ndarray
    column: np.ndarray
    cell: np.ndarray
    mask_row: np.ndarray


@functools.lru_cache(maxsize=256)
def _vectors_of(plan: Plan, dtype: np.dtype, images: int, channels: int, x_n: int, x_c: int, y_n: int) -> Vectors:
    t = table_of(plan, WIDTH[dtype], dtype.itemsize)
    image, column = (v.reshape(-1) for v in np.meshgrid(np.arange(images), np.arange(len(t.start)), indexing="ij"))
    more = -len(column) % VECTORS  # the last vector again: it is written twice, and alike
    image, column = (np.concatenate([v, np.repeat(v[-1:], more)]).astype(np.int64) for v in (image, column))
    cell = (np.arange(channels)[:, None] * x_c + t.shift).reshape(-1)
    mask_row = np.broadcast_to(np.arange(len(t.shift)) * len(t.start), (channels, len(t.shift))).reshape(-1)
    return Vectors(
        image * x_n + t.start[column],
        image * y_n + t.to[column],
        column,
        np.ascontiguousarray(cell, np.int64),
        np.ascontiguousarray(mask_row, np.int64),
    )


def fits(dtype: np.dtype, out: int, taps: int, plan: Plan) -> bool:
    """Whether this processor has the registers, few enough cells are summed for enough channels, and those of a vector follow one another."""
    return (
        taps < _DEEP
        and out >= _FEW
        and dtype in WIDTH
        and compiler.processor() == "x86-64-v4"
        and _function(dtype) is not None
        and table_of(plan, WIDTH[dtype], dtype.itemsize).cells is None
    )


def products(x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> None:
    """Write to y (N, M, *outs), in C order, what the cells of x (N, C, *size) that a plan reads give with weights (1, M, C * taps): of one group."""
    _, out, taps = weights.shape
    channels, n = x.shape[1], x.shape[0]
    blocks = -(-out // ROWS)
    # the eight weights of a tap lie side by side: one line of the cache for each step of the loop
    packed = np.zeros((blocks * ROWS, taps), x.dtype)
    packed[:out] = weights[0]
    packed = np.ascontiguousarray(packed.reshape(blocks, ROWS, taps).transpose(0, 2, 1))
    given = np.zeros(blocks * ROWS, x.dtype)
    if bias is not None:
        given[:out] = bias
    function, t = _function(x.dtype), table_of(plan, WIDTH[x.dtype], x.itemsize)
    # a few images at a time stay in the cache while all tiles of output channels go over them
    some = max(1, min(n, _CHUNK // max(x.strides[0], 1)))

    def images(low: int, high: int) -> None:
        for first in range(low, high, some):
            v = _vectors_of(plan, x.dtype, min(some, high - first), channels, x.strides[0], x.strides[1], y.strides[0])
            function(
                pointer(x) + first * x.strides[0], pointer(packed), pointer(given), pointer(y) + first * y.strides[0], blocks,
                len(v.column) // VECTORS, taps, out, y.strides[1], pointer(v.cell), pointer(v.mask_row), pointer(v.x_at), pointer(v.y_at),
                pointer(v.column), pointer(t.valid), pointer(t.stored),
            )  # fmt: skip

    if y.size * taps < _ALONE:
        images(0, n)
    else:
        threads.share(images, n)
