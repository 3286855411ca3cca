"""Convolution on the CPU: for each geometry one way is chosen, once, and taken."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor.kernels.convolution import columns, depthwise_llvm, direct_llvm, tiles_llvm, winograd
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.llvm_types import scratch
from tritensor.kernels.convolution.plans import Phase, Plan, of_phase_sets, of_windows
from tritensor.llvm import products, threads

_LARGE = 4 << 20  # bytes of an image's padded copy and results from which they are made in parts
_LARGE_WEIGHT = 1 << 17  # elements of a weight from which threads share the copy that puts its inputs last


class Way(enum.Enum):
    """How a convolution is computed."""

    WHOLE = "a product of matrices: the kernel covers each image once"
    DEPTHWISE = "machine code for a kernel of one channel"
    DIRECT = "machine code that reads the image itself under masks"
    TILES = "machine code over padded copies"
    WINOGRAD = "sums of tiles, and BLAS, for finite numbers"
    COLUMNS = "columns of what is summed, and BLAS"


# ---------------------------------------------------------------- which way


@functools.lru_cache(maxsize=512)
def way_of(plan: Plan, groups: int, channels: int, out: int, dtype: np.dtype) -> Way:
    """The fastest way from images (N, channels, *plan.size) to (N, out, *plan.outs)."""
    taps = channels // groups * len(plan.shifts)
    # of a kernel of one cell the image itself is the matrix of columns, which BLAS takes as it lies
    in_tiles = not columns.are_image(plan) and tiles_llvm.fits(dtype, plan, out // groups * taps)
    # one kernel to a channel leaves tiles a single row; of several to a channel they read it once for some
    depthwise = channels == groups and depthwise_llvm.has_code(dtype, plan)
    if depthwise and (not in_tiles or (out == groups and depthwise_llvm.fits(dtype, plan))):
        return Way.DEPTHWISE
    if groups == 1 and not plan.bare and direct_llvm.fits(dtype, out, taps, plan):
        return Way.DIRECT
    return Way.TILES if in_tiles else Way.COLUMNS


@functools.lru_cache(maxsize=256)
def _forward_way(s: Geometry, dtype: np.dtype) -> tuple[Way, Plan]:
    plan = of_windows(s)
    if s.whole:
        return Way.WHOLE, plan
    in_winograd = winograd.fits(dtype, plan, s.batch, s.groups, s.channels, s.out)
    return Way.WINOGRAD if in_winograd else way_of(plan, s.groups, s.channels, s.out, dtype), plan


@functools.lru_cache(maxsize=256)
def _input_ways(s: Geometry, dtype: np.dtype) -> tuple[tuple[Way | None, tuple[Phase, ...]], ...]:
    """The phases of the gradient to the input that have one plan, and their way; None where no tap reaches them."""

    def way(plan: Plan) -> Way:
        # of a stride each phase has cells of dx of its own
        in_winograd = max(s.stride) == 1 and winograd.fits(dtype, plan, s.batch, s.groups, s.out, s.channels)
        return Way.WINOGRAD if in_winograd else way_of(plan, s.groups, s.out, s.channels, dtype)

    return tuple([(way(phases[0].plan) if phases[0].taps else None, phases) for phases in of_phase_sets(s)])


@functools.lru_cache(maxsize=256)
def _weight_ways(s: Geometry, dtype: np.dtype) -> tuple[Way, Way, Plan]:
    """The way of the gradient to the weight, and the one for numbers that are not finite, which the zeros around copies would meet."""
    plan = of_windows(s)
    depthwise = s.channels == s.out == s.groups and depthwise_llvm.has_code(dtype, plan)
    other = Way.DEPTHWISE if depthwise else Way.COLUMNS
    # a kernel as large as the image reads each cell once: one product, nothing is gathered
    if s.whole:
        return Way.WHOLE, Way.WHOLE, plan
    if winograd.fits(dtype, plan, s.batch, s.groups, s.channels, s.out):
        return Way.WINOGRAD, other, plan
    if (depthwise and depthwise_llvm.fits(dtype, plan)) or plan.bare or not tiles_llvm.fits_gradient(s, dtype, plan):
        return other, other, plan
    return Way.TILES, other, plan


# ---------------------------------------------------------------- the convolution


def correlate(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, s: Geometry) -> np.ndarray:
    """y[n, o, r, q] = sum x[n, c, sh r + dh i - ph, sw q + dw j - pw] w[o, c, i, j] + bias[o]; (N, O, *outs)."""
    y = np.empty((s.batch, s.out, *s.outs), x.dtype)
    if y.size == 0:
        return y
    way, plan = _forward_way(s, x.dtype)
    if way is Way.WHOLE:
        products.matmul(_image_rows(x), w.reshape(s.out, -1).T, out=_image_rows(y))
        return y if bias is None else np.add(y, _along_channels(bias, s), out=y)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    if way is Way.WINOGRAD:
        if winograd.correlate(x, w.reshape(s.out, s.channels, s.taps), False, bias, plan, y):
            return y
        way = way_of(plan, s.groups, s.channels, s.out, x.dtype)
    _products(way, x, w.reshape(s.groups, s.out // s.groups, -1), bias, plan, y)
    return y


def _products(way: Way, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> None:
    """y (N, M, *outs), in C order: what the cells of x (N, C, *size) that a plan reads give with weights (G, M / G, C / G * taps)."""
    if way is Way.TILES:
        for part, read, made in _parts(x, plan, y.shape[1]):
            results = [tiles_llvm.Results(0, weights.shape[1], tiles_llvm.back(x.dtype, part))]
            tiles_llvm.products(np.ascontiguousarray(x[:, :, read]), weights, bias, part, y[:, :, made], results)
    elif way is Way.DIRECT:
        direct_llvm.products(x, weights, bias, plan, y)
    elif way is Way.DEPTHWISE:
        depthwise_llvm.correlate(x, weights.reshape(y.shape[1], len(plan.shifts)), bias, plan, y)
    else:
        columns.products(x, weights, bias, plan, y)


def _image_rows(x: np.ndarray) -> np.ndarray:
    """Each image as a row."""
    return x.reshape(x.shape[0], -1)


def _along_channels(bias: np.ndarray, s: Geometry) -> np.ndarray:
    return bias.reshape(-1, *(1,) * len(s.size))


def _parts(x: np.ndarray, plan: Plan, out: int) -> Iterator[tuple[Plan, slice, slice]]:
    """The plan, or, where copies of an image and of its `out` planes of results would be large, its parts, some rows of outputs each; with the cells
    that it reads and the outputs that it makes along the first axis."""
    image, outer = (x.shape[1] * math.prod(plan.size) + out * plan.places) * x.itemsize, plan.outs[0]
    rows = outer if image <= _LARGE else max(1, outer * _LARGE // image)
    if rows == outer:
        yield plan, slice(None), slice(0, outer)
        return
    for low in range(0, outer, rows):
        high = min(low + rows, outer)
        yield *plan.part(low, high), slice(low, high)


# ---------------------------------------------------------------- its gradient to the input


def input_gradient(g: np.ndarray, w: np.ndarray, bias: np.ndarray | None, s: Geometry) -> np.ndarray:
    """dx[n, c, h, v] = sum of g[n, o, r, q] w[o, c, i, j] over h = sh r + dh i - ph, v = sw q + dw j - pw, + bias[c]; (N, C, *size).

    The cells of a stride's phase are a convolution of g, of stride 1, with the taps that reach them.
    """
    dx = np.empty((s.batch, s.channels, *s.size), g.dtype)
    if dx.size == 0:
        return dx
    if g.size == 0:
        dx[...] = 0 if bias is None else _along_channels(bias, s)
        return dx
    if s.whole:
        product = products.matmul(_image_rows(g), w.reshape(s.out, -1)).reshape(dx.shape)
        return product if bias is None else np.add(product, _along_channels(bias, s), out=product)
    g = np.ascontiguousarray(g)
    taps = w.reshape(s.groups, s.out // s.groups, s.channels // s.groups, s.taps)
    for way, phases in _input_ways(s, g.dtype):
        if way is Way.WINOGRAD:  # the only phase
            plan = phases[0].plan
            if winograd.correlate(g, np.ascontiguousarray(taps[0]), True, bias, plan, dx):
                continue
            way = way_of(plan, s.groups, s.out, s.channels, g.dtype)
        if way is Way.TILES:
            _phases_in_tiles(g, taps, bias, s, phases, dx)
            continue
        for phase in phases:
            _phase(way, g, taps, bias, s, phase, dx)
    return dx


def _phase_weights(taps: np.ndarray, phase: Phase) -> np.ndarray:
    """The weights (G, C / G, O / G * taps) of the taps of a phase, of all (G, O / G, C / G, taps)."""
    groups, _, channels, count = taps.shape
    some = taps if len(phase.taps) == count else taps[..., list(phase.taps)]
    turned = some.transpose(0, 2, 1, 3)
    # numpy copies a small weight faster than threads are woken
    if turned.size < _LARGE_WEIGHT:
        return turned.reshape(groups, channels, -1)
    copied = np.empty(turned.shape, turned.dtype)
    threads.share(lambda low, high: np.copyto(copied[:, low:high], turned[:, low:high]), channels)
    return copied.reshape(groups, channels, -1)


def _phases_in_tiles(
    g: np.ndarray, taps: np.ndarray, bias: np.ndarray | None, s: Geometry, phases: tuple[Phase, ...], dx: np.ndarray
) -> None:
    """Cells of dx of phases of one plan, in one product: g is copied once for all of them."""
    per_group = s.channels // s.groups
    weights = _phase_weights(taps, phases[0]) if len(phases) == 1 else np.concatenate([_phase_weights(taps, phase) for phase in phases], 1)
    if bias is not None and len(phases) > 1:
        bias = np.concatenate([bias.reshape(s.groups, per_group)] * len(phases), 1)
    weights = np.ascontiguousarray(weights)
    for part, read, made in _parts(g, phases[0].plan, len(phases) * s.channels):
        results = []
        for i, phase in enumerate(phases):
            start = (phase.start[0] + made.start * s.stride[0], *phase.start[1:])
            results.append(tiles_llvm.Results(i * per_group, per_group, tiles_llvm.spread_over(g.dtype, part, s.size, start, s.stride)))
        tiles_llvm.products(np.ascontiguousarray(g[:, :, read]), weights, bias, part, dx, results)


def _phase(way: Way | None, g: np.ndarray, taps: np.ndarray, bias: np.ndarray | None, s: Geometry, phase: Phase, dx: np.ndarray) -> None:
    """Cells of dx of one phase."""
    every: Any = (..., *[slice(a, None, step) for a, step in zip(phase.start, s.stride, strict=True)])
    cells = dx[every]
    if way is None:
        cells[...] = 0 if bias is None else _along_channels(bias, s)
        return
    # machine code and BLAS write rows without gaps: a phase of a stride is made beside dx and copied
    onto = cells if cells.flags.c_contiguous else scratch("phase", cells.shape, dx.dtype)
    _products(way, g, np.ascontiguousarray(_phase_weights(taps, phase)), bias, phase.plan, onto)
    if onto is not cells:
        cells[...] = onto


# ---------------------------------------------------------------- its gradient to the weight


def weight_gradient(x: np.ndarray, g: np.ndarray, s: Geometry) -> np.ndarray:
    """dw[o, c, i, j] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r + dh i - ph, sw q + dw j - pw]."""
    shape = (s.out, s.channels // s.groups, *s.kernel)
    if g.size == 0:
        return np.zeros(shape, x.dtype)
    way, other, plan = _weight_ways(s, x.dtype)
    if way is Way.WHOLE:
        return products.matmul(_image_rows(g).T, _image_rows(x)).reshape(shape)
    x, g = np.ascontiguousarray(x), np.ascontiguousarray(g)
    if way is Way.TILES or way is Way.WINOGRAD:
        dw = np.empty(shape, x.dtype)  # in memory of its own, which a leaf keeps
        fill = winograd.weight_gradient if way is Way.WINOGRAD else _weight_in_tiles
        fill(x, g, plan, dw.reshape(s.groups, s.out // s.groups, -1))
        if np.isfinite(dw).all():
            return dw
        way = other
    if way is Way.DEPTHWISE:
        return depthwise_llvm.weight_gradient(x, g, plan).reshape(shape)
    return columns.weight_gradient(x, g, s.groups, plan).reshape(shape)


def _weight_in_tiles(x: np.ndarray, g: np.ndarray, plan: Plan, dw: np.ndarray) -> None:
    """The gradient (G, O / G, C / G * taps) by tiles, of large images part by part."""
    for i, (part, read, made) in enumerate(_parts(x, plan, g.shape[1])):
        found = tiles_llvm.gradient(np.ascontiguousarray(x[:, :, read]), np.ascontiguousarray(g[:, :, made]), len(dw), part)
        np.copyto(dw, found) if i == 0 else np.add(dw, found, out=dw)
