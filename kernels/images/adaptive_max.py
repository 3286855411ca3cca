"""adaptive_max_pool: the maximum of each of `size` windows that divide every axis evenly, and where it stands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ShapeError
from tritensor.kernels.images.axis_maps import AREA, Axis, adjoint_span, forward_span
from tritensor.kernels.images.resampling_cpu import channels_last
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.cpu.blocks import SILENT, upcast
from tritensor.kernels.parts.grid_indices import long_offsets, place_of, tile, tile_of
from tritensor.kernels.parts.view_arithmetic import is_channels_last, reshaped, volume
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind

Sizes = tuple[int, ...]
BLOCK = 128
CACHE = 65536  # elements that numpy works on at a time
INT64 = np.dtype(np.int64)


@triton.jit
def _first(o, size, out):
    """The first cell of window o, in o's type: 64 bits where the arrays need that."""
    return (o.to(tl.int64) * size // out).to(o.dtype)


@triton.jit
def _last(o, size, out):
    """The cell after the last one of window o."""
    return (((o.to(tl.int64) + 1) * size + out - 1) // out).to(o.dtype)


# y[n, c, a, b, e] = max of x[n, c] over window (a, b, e), and the flat place of the first largest
@triton.jit(do_not_specialize=["rows", "width", "channels", "size", "out", "spans", "strides"])
def _adaptive_max_kernel(
    x, y, index, rows, width, channels, size, out, spans, strides,
    F: tl.constexpr, CHANNELS_LAST: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row, col, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    n, c, a, b, e = place_of(row, col, channels, out, True, CHANNELS_LAST)
    i_0, j_0, k_0 = _first(a, size[0], out[0]), _first(b, size[1], out[1]), _first(e, size[2], out[2])
    best = tl.full((ROWS, COLS), float("-inf"), F)
    found = tl.broadcast_to((i_0 * size[1] + j_0) * size[2] + k_0, (ROWS, COLS))
    for i_k in range(spans[0]):
        i = i_0 + i_k
        for j_k in range(spans[1]):
            j = j_0 + j_k
            in_rows = inside & (i < _last(a, size[0], out[0])) & (j < _last(b, size[1], out[1]))
            for k_k in range(spans[2]):
                k = k_0 + k_k
                there = in_rows & (k < _last(e, size[2], out[2]))
                from_ = x + n * strides[0] + c * strides[1] + i * strides[2] + j * strides[3] + k * strides[4]
                value = tl.load(from_, mask=there, other=0).to(F)
                take = there & ((value > best) | (value != value))
                best = tl.where(take, value, best)
                found = tl.where(take, (i * size[1] + j) * size[2] + k, found)
    tl.store(y + at, best.to(y.dtype.element_ty), mask=inside)
    tl.store(index + at, found, mask=inside)


# dx[n, c, i, j, k] = sum of g[n, c, w] over the windows w that hold (i, j, k) and chose it
@triton.jit(do_not_specialize=["rows", "width", "channels", "size", "out", "spans", "strides", "index_strides"])
def _adaptive_spread_kernel(
    g, index, dx, rows, width, channels, size, out, spans, strides, index_strides,
    F: tl.constexpr, CHANNELS_LAST: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row, col, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    n, c, i, j, k = place_of(row, col, channels, size, True, CHANNELS_LAST)
    here = (i * size[1] + j) * size[2] + k
    total = tl.zeros((ROWS, COLS), F)
    for a_k in range(spans[0]):
        a = _first(i, out[0], size[0]) + a_k
        for b_k in range(spans[1]):
            b = _first(j, out[1], size[1]) + b_k
            in_rows = inside & (a < out[0]) & (b < out[1])
            for e_k in range(spans[2]):
                e = _first(k, out[2], size[2]) + e_k
                there = in_rows & (e < out[2])
                from_ = n * index_strides[0] + c * index_strides[1] + a * index_strides[2] + b * index_strides[3] + e * index_strides[4]
                chosen = tl.load(index + from_, mask=there, other=-1).to(here.dtype)
                arrives = n * strides[0] + c * strides[1] + a * strides[2] + b * strides[3] + e * strides[4]
                total += tl.load(g + arrives, mask=there & (chosen == here), other=0).to(F)
    tl.store(dx + at, total.to(dx.dtype.element_ty), mask=inside)


def _axes(cells: Sizes, size: Sizes) -> list[Axis]:
    return [Axis(n, m, 1.0) for n, m in zip((*(1,) * (3 - len(cells)), *cells), (*(1,) * (3 - len(size)), *size), strict=True)]


def _shape(x: Any, *, size: Sizes) -> tuple[Spec, Spec]:
    if len(x.shape) - 2 not in (1, 2, 3) or len(size) != len(x.shape) - 2 or 0 in x.shape[1:] or min(size) < 1:
        raise ShapeError(
            f"adaptive_max_pool: x {tuple(x.shape)}, size {tuple(size)}: x must be (N, C, one to three axes) with elements, with a size for each axis"
        )
    refuse_kind("adaptive_max_pool", x.dtype, ("float",))
    return Spec((*x.shape[:2], *size), x.dtype), Spec((*x.shape[:2], *size), INT64)


def _windows(n: int, m: int) -> tuple[np.ndarray, list[Any]]:
    """The first cells of m windows over n, and for each k the k-th cells, as a slice where windows lie side by side; short ones repeat their last."""
    starts, ends = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
    cells = [np.minimum(starts + k, ends - 1) for k in range(int((ends - starts).max()))]
    return starts, [slice(k, None, n // m) for k in range(n // m)] if n % m == 0 else cells


def _largest(values: np.ndarray, places: np.ndarray | None, step: int, m: int, nan: bool) -> tuple[np.ndarray, np.ndarray]:
    """Maxima over m windows along axis 1 of (P, n, L), and their places: `places` of what is in values, plus step for each cell of the axis.

    Of equals the least place wins, which is the first in the order of all axes; NaN is above all, and of NaN the last wins, as in PyTorch.
    """
    starts, taps = _windows(values.shape[1], m)
    best = np.array(values[:, taps[0]])
    if places is None:  # what is met first has the least place: its number in the window is enough, and small
        number = np.zeros(best.shape, np.min_scalar_type(len(taps)))
        for k, cells in enumerate(taps[1:], 1):
            value = values[:, cells]
            take = (value > best) | (value != value) if nan else value > best
            np.copyto(number, k, where=take)
            np.maximum(best, value, out=best)
        number = np.minimum(number, (-(-(np.arange(m) + 1) * values.shape[1] // m) - starts - 1)[:, None])  # a NaN repeated
        return best, (starts[:, None] + number) * step
    at = np.arange(values.shape[1])[:, None] * step
    index = (places + at)[:, taps[0]]
    for cells in taps[1:]:
        value, place = values[:, cells], (places + at)[:, cells]
        take = (value > best) | ((value == best) & (place < index))
        if nan:
            take |= (value != value) & ((best == best) | (place > index))
        np.copyto(index, place, where=take)
        np.copyto(best, value, where=take)
    return best, index


def _even(cells: Sizes, size: Sizes) -> bool:
    """Whether windows lie side by side, and are large enough for numpy's argmax of each."""
    return all(n % m == 0 for n, m in zip(cells, size, strict=True)) and math.prod(cells) >= 16 * math.prod(size)


def _largest_of_even(x: np.ndarray, size: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Maxima of windows that lie side by side, and their places, of C-ordered images without NaN: argmax of each window's cells in a row."""
    cells, dims = x.shape[2:], len(size)
    spans = tuple(n // m for n, m in zip(cells, size, strict=True))
    split = tuple(v for pair in zip(size, spans, strict=True) for v in pair)
    order = (0, *range(1, 2 * dims, 2), *range(2, 2 * dims + 1, 2))
    planes = x.reshape(-1, *split).transpose(order)
    best, places = np.empty((len(planes), math.prod(size)), x.dtype), np.empty((len(planes), math.prod(size)), INT64)
    corner = np.ravel_multi_index(np.ix_(*(np.arange(m) * k for m, k in zip(size, spans, strict=True))), cells).reshape(-1)
    inside = np.ravel_multi_index(np.ix_(*map(np.arange, spans)), cells).reshape(-1)
    step = max(CACHE // math.prod(cells), 1)
    for start in range(0, len(planes), step):
        windows = np.ascontiguousarray(planes[start : start + step]).reshape(-1, inside.size)
        at = np.argmax(windows, axis=1)
        best[start : start + step] = windows[np.arange(len(windows)), at].reshape(-1, corner.size)
        places[start : start + step] = inside[at].reshape(-1, corner.size) + corner
    shape = (*x.shape[:2], *size)
    return best.reshape(shape), places.reshape(shape)


def _reference(x: np.ndarray, *, size: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The largest element of each window, output o of m over cells floor(o n / m) to ceil((o + 1) n / m), and its flat place in x's axes."""
    y, index = np.zeros((*x.shape[:2], *size), x.dtype), np.zeros((*x.shape[:2], *size), INT64)
    numbers = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for out in np.ndindex(*size):
        window: Any = tuple(slice(o * n // m, -(-(o + 1) * n // m)) for o, n, m in zip(out, x.shape[2:], size, strict=True))
        cells = numbers[window].reshape(-1)
        values = x[(..., *window)].reshape(*x.shape[:2], len(cells))  # type: ignore[arg-type]
        missing = np.isnan(values)  # of several the last one wins, as in PyTorch
        place = np.where(missing.any(-1), len(cells) - 1 - missing[..., ::-1].argmax(-1), values.argmax(-1))
        y[(..., *out)], index[(..., *out)] = np.take_along_axis(values, place[..., None], -1)[..., 0], cells[place]
    return y, index


def _cpu(x: np.ndarray, *, size: Sizes) -> tuple[np.ndarray, np.ndarray]:
    last = channels_last(x)
    y = np.ascontiguousarray(np.moveaxis(upcast(x), 1, -1) if last else upcast(x))
    with SILENT():
        nan = bool(np.isnan(y.sum()))
    # argmax of each window's cells in a row is two to ten times as fast as going axis by axis
    if not last and not nan and y.size and _even(x.shape[2:], size):
        y, places = _largest_of_even(y, size)
        return y.astype(x.dtype, copy=False), places
    lead, places = 1 if last else 2, None
    for d in range(len(size)):  # rows first: they are long, and fewer are left for the columns
        shape, at = y.shape, lead + d
        flat = (math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]))
        y, places = _largest(y.reshape(flat), None if places is None else places.reshape(flat), math.prod(x.shape[3 + d :]), size[d], nan)
        y, places = (v.reshape(*shape[:at], size[d], *shape[at + 1 :]) for v in (y, places))
    assert places is not None
    y = y.astype(x.dtype, copy=False)
    return (np.moveaxis(y, -1, 1), np.moveaxis(places, -1, 1)) if last else (y, places)


def _forward(x: CudaArray, *, size: Sizes) -> tuple[CudaArray, CudaArray]:
    last = is_channels_last(x)
    memory, y = image_for((*x.shape[:2], *size), x.dtype, x, last)
    numbers, index = image_for((*x.shape[:2], *size), INT64, x, last)
    axes = _axes(x.shape[2:], size)
    if y.size:
        t = tile(tuple(y.shape), last)
        launch(
            _adaptive_max_kernel, (t.programs,), x, memory, numbers, t.rows, t.width, x.shape[1], tuple(a.size for a in axes),
            tuple(a.out for a in axes), tuple(forward_span(a, AREA) for a in axes), volume(x).strides,
            F=tl.float64 if x.dtype == np.float64 else tl.float32, CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), **t.constants,
        )  # fmt: skip
    return y, index


def _rule(g: Any, indices: Any, x_shape: Sizes) -> Any:
    lead, cells = x_shape[:2], math.prod(x_shape[2:])
    chosen = (*lead, math.prod(indices.shape[2:]))
    zeros = ops.full(shape=(*lead, cells), value=0, dtype=g[0]._array.dtype, device=g[0].device)
    return reshaped(ops.scatter_add(zeros, reshaped(indices, chosen), reshaped(g[0], chosen), dim=2), tuple(x_shape))


def _backward(g: Any, indices: CudaArray, x_shape: Sizes) -> CudaArray:
    arriving = g[0]
    last = is_channels_last(indices)
    memory, dx = image_for(x_shape, arriving.dtype, arriving, last)
    axes = _axes(x_shape[2:], indices.shape[2:])
    if dx.size:
        t = tile(tuple(x_shape), last, 512)  # places and sums of 64 bits take many registers
        launch(
            _adaptive_spread_kernel, (t.programs,), arriving, indices, memory, t.rows, t.width, x_shape[1], tuple(a.size for a in axes),
            tuple(a.out for a in axes), tuple(adjoint_span(a, AREA) for a in axes), volume(arriving).strides, volume(indices).strides,
            F=tl.float64 if arriving.dtype == np.float64 else tl.float32, CHANNELS_LAST=last,
            LONG_OFFSETS=long_offsets(arriving, indices, dx), **t.constants,
        )  # fmt: skip
    return dx


def _cpu_backward(g: Any, indices: np.ndarray, x_shape: Sizes) -> np.ndarray:
    arriving = g[0]
    # counted by bins in float64: windows overlap, and a cell may be the largest of several
    planes, cells = math.prod(x_shape[:2]), math.prod(x_shape[2:])
    keys = indices.reshape(planes, -1) + np.arange(planes)[:, None] * cells if planes else indices.reshape(0)
    sums = np.bincount(keys.reshape(-1), arriving.reshape(-1).astype(np.float64), planes * cells)
    return sums.astype(arriving.dtype).reshape(x_shape)


def _samples(rng: np.random.Generator) -> list[Sample]:
    def x(*shape: int) -> np.ndarray:
        return rng.permutation(math.prod(shape)).reshape(shape) / 8.0 - 2  # no two values near each other

    return [
        Sample(x(2, 3, 7), size=(3,)),
        Sample(x(2, 2, 4, 6), size=(2, 3)),
        Sample(np.moveaxis(x(1, 5, 4, 3), -1, 1), size=(3, 5)),  # channels innermost
        Sample(x(1, 2, 3, 4, 3), size=(2, 2, 1)),
        Sample(x(1, 2, 9, 10), size=(5, 4)),  # windows overlap
        Sample(np.array([[[0, np.nan, 1, 0, 2]]]), size=(3,), smooth=False),  # NaN at the end of a short window
        Sample(x(1, 2, 8, 16), size=(2, 4)),  # even windows of many cells
        Sample(np.zeros((0, 2, 4)), size=(3,)),
    ]


def _work(x: Any, *, size: Sizes) -> Work:
    """One comparison for each element; the image is read, maxima and their places are written once."""
    y = math.prod(x.shape[:2]) * math.prod(size)
    return Work(math.prod(x.shape), math.prod(x.shape) * x.dtype.itemsize + y * (x.dtype.itemsize + 8))


op(
    "adaptive_max_pool", _reference, cpu=_cpu, shape=_shape, forward=_forward, outputs=("y", "indices"), rule=_rule, backward=_backward,
    cpu_backward=_cpu_backward, samples=_samples, layout="images",
    sizes=lambda rng: [Sample(rng.standard_normal((32, 64, 56, 56)), size=(7, 7))], work=_work,
)  # fmt: skip
