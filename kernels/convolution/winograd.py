"""Winograd's convolutions of 3 x 3 kernels on the CPU: 16 products of matrices for four outputs in place of 36 (Lavin and Gray 2015, F(2 x 2, 3 x 3)).

A tile of 4 x 4 cells d gives 2 x 2 outputs A^T [(G w G^T) * (B^T d B)] A. The products of all tiles and channels at one of the 16 places are one
product of matrices, which BLAS does; the sums before and behind it are machine code, which reads padded copies (see padded.py). Numbers that are not
finite would reach all outputs of a tile: who meets one computes otherwise. An output's roundings are those of all cells of its tile, as in other
libraries that do so.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.convolution.llvm_types import Kind, pointer, scratch
from tritensor.kernels.convolution.padded import copy_pieces, layout_of
from tritensor.kernels.convolution.plans import Plan
from tritensor.kernels.convolution.tiles_llvm import kind_of
from tritensor.kernels.parts.cpu.blocks import SILENT
from tritensor.llvm import compiler, products, threads, workers
from tritensor.llvm.loop_nest import LoopNest

_CHANNELS = 32  # of images and of results from which sums before and behind the products pay
_TILES = 64  # in all images from which the weight's sums pay
_CHUNK = 4 << 20  # bytes of sums at a time, but for
_FEW = 256  # tiles, below which the products read more of weights than of images
_WEIGHT = 1 << 17  # elements of a weight from which threads share its sums
_FLOAT = np.dtype(np.float32)

# sums of rows and of columns: of cells, of results, and, the other way, of given gradients; (place, sign) of each term
_CELLS = (((0, 1), (2, -1)), ((1, 1), (2, 1)), ((2, 1), (1, -1)), ((1, 1), (3, -1)))
_RESULTS = (((0, 1), (1, 1), (2, 1)), ((1, 1), (2, -1), (3, -1)))
_GIVEN = (((0, 1),), ((0, 1), (1, 1)), ((0, 1), (1, -1)), ((1, -1),))
_WEIGHTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)  # G


# ---------------------------------------------------------------- where it is used


@functools.lru_cache(maxsize=256)
def fits(dtype: np.dtype, plan: Plan, images: int, groups: int, channels: int, out: int) -> bool:
    """Whether a plan is one of 3 x 3 cells side by side, and there are channels and tiles enough."""
    if dtype != _FLOAT or groups != 1 or min(channels, out) < _CHANNELS or len(plan.size) != 2 or max(plan.stride) != 1:
        return False
    first = _first(plan)
    cells = {(first[0] + i, first[1] + j) for i in range(3) for j in range(3)}
    tall, wide = _tiles(plan)
    return len(plan.shifts) == 9 and set(plan.shifts) == cells and images * tall * wide >= _TILES and not compiler.refusal()


def _first(plan: Plan) -> tuple[int, int]:
    return min(s[0] for s in plan.shifts), min(s[1] for s in plan.shifts)


def _tiles(plan: Plan) -> tuple[int, int]:
    """Tiles of an image, down and across."""
    return -(-plan.outs[0] // 2), -(-plan.outs[1] // 2)


@functools.lru_cache(maxsize=256)
def _cells_of(plan: Plan) -> Plan:
    """The cells of the tiles."""
    a, b = _first(plan)
    return Plan(plan.size, _tiles(plan), (2, 2), tuple([(a + i, b + j) for i in range(4) for j in range(4)]))


@functools.lru_cache(maxsize=256)
def _given_of(plan: Plan) -> Plan:
    """The results of the tiles."""
    return Plan(plan.outs, _tiles(plan), (2, 2), ((0, 0), (0, 1), (1, 0), (1, 1)))


@functools.lru_cache(maxsize=256)
def _of_taps(shifts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """What the 16 places have of each tap: (16, 9)."""
    a, b = min(s[0] for s in shifts), min(s[1] for s in shifts)
    return np.ascontiguousarray(np.stack([np.outer(_WEIGHTS[:, s[0] - a], _WEIGHTS[:, s[1] - b]).reshape(16) for s in shifts], 1))


# ---------------------------------------------------------------- machine code


def _sum_lines(nest: LoopNest, k: Kind, name: str, terms: Sequence[tuple[str, int]]) -> None:
    """%<name>: a sum of vectors with signs."""
    (so_far, sign), *rest = terms
    if sign < 0:
        nest.lines.append(f"  %{name}.0 = fneg {k.vector} {so_far}")
        so_far = f"%{name}.0"
    for i, (term, sign) in enumerate(rest, 1):
        nest.lines.append(f"  %{name}.{i} = {'fadd' if sign > 0 else 'fsub'} {k.vector} {so_far}, {term}")
        so_far = f"%{name}.{i}"
    nest.lines.append(f"  %{name} = bitcast {k.vector} {so_far} to {k.vector}")


def _both_ways(nest: LoopNest, k: Kind, sums: Sequence[Sequence[tuple[int, int]]], size: int) -> None:
    """%t<i>_<j>: the sums of columns and then of rows of %d<i>_<j>, size x size."""
    for i, terms in enumerate(sums):
        for j in range(size):
            _sum_lines(nest, k, f"half{i}_{j}", [(f"%d{place}_{j}", sign) for place, sign in terms])
    for i in range(len(sums)):
        for j, terms in enumerate(sums):
            _sum_lines(nest, k, f"t{i}_{j}", [(f"%half{i}_{place}", sign) for place, sign in terms])


@functools.cache
def _before(k: Kind, given: bool) -> Any:
    """The 16 sums of the tiles of planes, of cells or of given gradients: v[place][plane][tile]."""
    size, nest = 2 if given else 4, LoopNest()
    for t in range(size * size):
        nest.load_element(f"shift{t}", "i64", "%shift", str(t), 8)
        nest.lines.append(f"  %tap{t} = getelementptr i8, ptr %x, i64 %shift{t}")
    with nest.loop("c", "%planes"):
        nest.lines.append("  %image = mul i64 %c, %x_c")
        nest.offset_pointer("onto", "%v", ("%c", "%v_c"))
        with nest.loop("q", "%vectors"):
            nest.load_element("from", "i64", "%x_at", "%q", 8)
            nest.load_element("to", "i64", "%v_at", "%q", 8)
            nest.lines += ["  %place = add i64 %image, %from", "  %there = getelementptr i8, ptr %onto, i64 %to"]
            for t in range(size * size):
                nest.lines.append(f"  %at{t} = getelementptr i8, ptr %tap{t}, i64 %place")
                nest.lines.append(f"  %d{t // size}_{t % size} = load {k.vector}, ptr %at{t}, align {k.item}")
            _both_ways(nest, k, _GIVEN if given else _CELLS, size)
            for t in range(16):
                nest.offset_pointer(f"onto{t}", "%there", (str(t), "%v_t"))
                nest.lines.append(f"  store {k.vector} %t{t // 4}_{t % 4}, ptr %onto{t}, align {k.item}")
    return nest.compile(("x", "v", "planes", "vectors", "x_c", "v_c", "v_t", "shift", "x_at", "v_at"), {"x", "v", "shift", "x_at", "v_at"})


@functools.cache
def _behind(k: Kind) -> Any:
    """The results of the tiles of planes, to images; answers whether one is not finite."""
    w, nest = k.width, LoopNest()
    wide, lanes, store = f"<{2 * w} x {k.number}>", f"<{2 * w} x i1>", f"llvm.masked.store.v{2 * w}f{8 * k.item}.p0"
    mixed = ", ".join(f"i32 {i // 2 + i % 2 * w}" for i in range(2 * w))
    with nest.loops({"o": "%planes", "q": "%vectors"}, bad=(k.vector, "zeroinitializer")):
        nest.offset_pointer("from", "%m", ("%o", "%m_c"))
        nest.offset_pointer("onto", "%y", ("%o", "%y_c"))
        for name, array in (("read", "%m_at"), ("first", "%y_at"), ("own", "%whole")):
            nest.load_element(name, "i64", array, "%q", 8)
        nest.load_element("bias_o", k.number, "%bias", "%o", k.item)
        nest.lines += [*k.spread("bias_o", "start"), "  %here = getelementptr i8, ptr %from, i64 %read"]
        nest.lines += ["  %y0 = getelementptr i8, ptr %onto, i64 %first", "  %y1 = getelementptr i8, ptr %y0, i64 %row"]
        for t in range(16):
            nest.offset_pointer(f"m{t}", "%here", (str(t), "%m_t"))
            nest.lines.append(f"  %d{t // 4}_{t % 4} = load {k.vector}, ptr %m{t}, align {k.item}")
        _both_ways(nest, k, _RESULTS, 4)
        for i in range(2):
            for j in range(2):
                nest.lines.append(f"  %s{i}_{j} = fadd {k.vector} %t{i}_{j}, %start")
            nest.lines.append(f"  %row{i} = shufflevector {k.vector} %s{i}_0, {k.vector} %s{i}_1, <{2 * w} x i32> <{mixed}>")
        # 0 times what is finite is 0, anything else NaN
        _sum_lines(nest, k, "sizes", [(f"%s{i}_{j}", 1) for i in range(2) for j in range(2)])
        nest.lines += [f"  %none = fmul {k.vector} %sizes, zeroinitializer", f"  %bad.new = fadd {k.vector} %bad, %none"]
        nest.lines += ["  %all = icmp ne i64 %own, 0", "  br i1 %all, label %plain, label %masked", "plain:"]
        nest.lines += [f"  store {wide} %row{i}, ptr %y{i}, align {k.item}" for i in range(2)]
        nest.lines += ["  br label %stored", "masked:", "  %q2 = mul i64 %q, 2", "  %q3 = add i64 %q2, 1"]
        for i, place in enumerate(("%q2", "%q3")):
            nest.load_element(f"bits{i}", f"i{2 * w}", "%mask", place, 2 * w // 8)
            nest.lines.append(f"  %lanes{i} = bitcast i{2 * w} %bits{i} to {lanes}")
            nest.lines.append(f"  call void @{store}({wide} %row{i}, ptr %y{i}, i32 {k.item}, {lanes} %lanes{i})")
        nest.lines += ["  br label %stored", "stored:"]
    last = "%bad.new"
    nest.lines += [f"  %nan = fcmp uno {k.vector} {last}, {last}", f"  %any = call i1 @llvm.vector.reduce.or.v{w}i1({k.lanes} %nan)"]
    nest.lines.append("  %answer = zext i1 %any to i64")
    parameters = ("m", "y", "bias", "planes", "vectors", "m_c", "m_t", "y_c", "row", "m_at", "y_at", "whole", "mask")
    pointers = {"m", "y", "bias", "m_at", "y_at", "whole", "mask"}
    kinds = [("ptr", ctypes.c_void_p) if p in pointers else ("i64", ctypes.c_int64) for p in parameters]
    text = "\n".join([
        nest.text(*[f"{word} %{p}" for (word, _), p in zip(kinds, parameters, strict=True)], returns="i64 %answer"),
        f"declare void @{store}({wide}, ptr, i32, {lanes})", f"declare i1 @llvm.vector.reduce.or.v{w}i1({k.lanes})", "",
    ])  # fmt: skip
    return compiler.build_typed(text, ctypes.c_int64, *[kind for _, kind in kinds])


# ---------------------------------------------------------------- where vectors lie


class _Vectors(NamedTuple):
    """Of vectors of some images' tiles, one row of tiles after the other: where each reads a copy and writes sums, where its results begin, whether all
    of what it stores is its own or written again, and which lanes of its two rows are results."""

    cells: np.ndarray
    sums: np.ndarray
    results: np.ndarray
    whole: np.ndarray
    mask: np.ndarray


@functools.lru_cache(maxsize=256)
def _vectors(cells: Plan, outs: tuple[int, int], images: int, x_n: int, y_n: int, y_row: int, width: int, item: int) -> _Vectors:
    (tall, wide), layout = cells.outs, layout_of(cells, width, item)
    each = -(-wide // width)
    pitch = int(layout.back.table[1, 0]) // item if tall > 1 else 0  # rows of results lie as rows of what a tap reads do
    n, row, v = (a.reshape(-1) for a in np.indices((images, tall, each)))
    lane = np.arange(2 * width)
    columns = outs[1] - 2 * v[:, None] * width > lane
    masks = np.stack([columns, columns & (2 * row[:, None] + 1 < outs[0])], 1)
    bits = np.packbits(masks, axis=-1, bitorder="little").reshape(len(n), -1)
    # what a vector stores behind its row the next rows write again, unless there are several to a row, or none follows
    behind = (2 * row + 1) * outs[1] + 2 * (v + 1) * width
    own = (outs[1] % (2 * width) == 0) | ((each == 1) & (behind <= outs[0] * outs[1]))
    return _Vectors(
        (n * x_n + (row * pitch + v * width) * item).astype(np.int64),
        (((n * tall + row) * wide + v * width) * item).astype(np.int64),
        (n * y_n + 2 * row * y_row + 2 * v * width * item).astype(np.int64),
        (own & (2 * row + 1 < outs[0])).astype(np.int64),
        np.ascontiguousarray(bits),
    )


# ---------------------------------------------------------------- the convolutions


def _parts(images: int, tiles: int, channels: int) -> Iterable[slice]:
    """Images at a time."""
    some = min(images, max(1, _CHUNK // (16 * _FLOAT.itemsize * channels * tiles), _FEW // tiles))
    return [slice(first, min(first + some, images)) for first in range(0, images, some)]


def _sums(name: str, x: np.ndarray, cells: Plan, tiles: int, v: _Vectors, given: bool) -> np.ndarray:
    """(16, channels, images * tiles) sums of the tiles of x (images, channels, *size)."""
    (n, channels), k, item = x.shape[:2], kind_of(x.dtype), x.itemsize
    layout, count = layout_of(cells, k.width, item), n * tiles
    copies, sums = scratch("copies", (n, channels, layout.plane), x.dtype), scratch(name, (16, channels, count + k.width), x.dtype)
    (copies if layout.gaps else copies[..., -k.width :]).fill(0)
    plane, size = layout.plane * item, x.nbytes // (n * channels)
    copy_pieces(pointer(x), pointer(copies), item, (1, n * channels), (0, size), (0, plane), layout.into, alone=False)
    at_x, at_v, (far, step, _) = pointer(copies), pointer(sums), sums.strides

    def part(low: int, high: int) -> tuple[int, ...]:
        """Some of the channels."""
        return (
            at_x + low * plane, at_v + low * step, high - low, len(v.cells), plane, step, far, pointer(layout.shift), pointer(v.cells), pointer(v.sums),
        )  # fmt: skip

    threads.run_shared(_before(k, given), channels, part)
    return sums[:, :, :count]


def _cells(x: np.ndarray, plan: Plan, n: int, y_n: int, y_row: int) -> tuple[Plan, int, _Vectors]:
    cells, k = _cells_of(plan), kind_of(x.dtype)
    plane = layout_of(cells, k.width, k.item).plane * k.item
    tall, wide = cells.outs
    return cells, tall * wide, _vectors(cells, (plan.outs[0], plan.outs[1]), n, x.shape[1] * plane, y_n, y_row, k.width, k.item)


@SILENT()
def correlate(x: np.ndarray, taps: np.ndarray, across: bool, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> bool:
    """Write to y (N, M, *outs), whose planes are in C order, what the cells of x (N, C, *size), in C order, that a plan reads give with taps (M, C, 9),
    or, `across`, (C, M, 9); False where a result is not finite, and has to be computed otherwise."""
    rows, columns, _ = taps.shape
    k, out, bias = kind_of(x.dtype), y.shape[1], np.zeros(y.shape[1], x.dtype) if bias is None else np.ascontiguousarray(bias)
    weights = _weights(taps, plan).reshape(16, rows, columns)
    left = weights.transpose(0, 2, 1) if across else weights
    tall, wide = _tiles(plan)
    for some in _parts(len(x), tall * wide, x.shape[1] + out):
        n = some.stop - some.start
        cells, tiles, v = _cells(x, plan, n, y.strides[0], y.strides[2])
        sums = _sums("cells", x[some], cells, tiles, v, given=False)
        made = scratch("made", (16, out, n * tiles + k.width), x.dtype)
        made[:, :, n * tiles :] = 0  # which vectors read, too
        products.matmul(left, sums, out=made[:, :, : n * tiles])
        at_m, at_y, (far, step, _) = pointer(made), pointer(y[some]), made.strides

        def part(
            low: int, high: int, at_m: int = at_m, at_y: int = at_y, far: int = far, step: int = step, v: _Vectors = v
        ) -> tuple[int, ...]:
            return (
                at_m + low * step, at_y + low * y.strides[1], pointer(bias) + low * x.itemsize, high - low, len(v.sums), step, far, y.strides[1],
                y.strides[2], pointer(v.sums), pointer(v.results), pointer(v.whole), pointer(v.mask),
            )  # fmt: skip

        function = _behind(k)
        answer = threads.call(workers.address(function), out, part)
        if function(*part(0, out)) if answer is None else answer:
            return False
    return True


def _weights(taps: np.ndarray, plan: Plan) -> np.ndarray:
    """The 16 sums of the taps (..., 9) of each pair of channels, (16, pairs)."""
    flat, table = taps.reshape(-1, 9), _of_taps(plan.shifts)
    found = scratch("weights", (16, len(flat)), taps.dtype)
    _by_pairs(lambda low, high: np.matmul(table, flat[low:high].T, out=found[:, low:high]), len(flat))
    return found


def _by_pairs(work: Any, pairs: int) -> None:
    if threads.count() < 2:
        work(0, pairs)
        return
    # BLAS's own threads, asked once, would look for more work while ours share the products
    with threads.single_threaded_blas:
        if pairs < _WEIGHT:
            work(0, pairs)
        else:
            threads.share(work, pairs)


@SILENT()
def weight_gradient(x: np.ndarray, g: np.ndarray, plan: Plan, dw: np.ndarray) -> None:
    """Write to dw (1, O, C * 9), in C order, the gradient to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order; zeros around images
    are multiplied, too."""
    k, (out, channels) = kind_of(x.dtype), (g.shape[1], x.shape[1])
    total: np.ndarray | None = None
    given = _given_of(plan)
    tall, wide = given.outs
    for some in _parts(len(x), tall * wide, channels + out):
        n = some.stop - some.start
        cells, tiles, v = _cells(x, plan, n, 0, 0)
        plane = layout_of(given, k.width, k.item).plane * k.item
        up = _sums(
            "given", g[some], given, tiles, _vectors(given, (plan.outs[0], plan.outs[1]), n, out * plane, 0, 0, k.width, k.item), given=True
        )
        sums = _sums("cells", x[some], cells, tiles, v, given=False)
        found = products.matmul(up, sums.transpose(0, 2, 1), out=scratch("found", (16, out, channels), x.dtype))
        total = found.copy() if total is None and n < len(x) else found if total is None else np.add(total, found, out=total)
    assert total is not None
    flat, table = total.reshape(16, -1), _of_taps(plan.shifts)
    rows = dw.reshape(-1, 9)
    _by_pairs(lambda low, high: np.matmul(flat[:, low:high].T, table, out=rows[low:high]), len(rows))
