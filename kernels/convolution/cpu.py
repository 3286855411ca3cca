"""Convolution on the CPU: tiles over padded copies, or columns of what is summed, gathered for some images or rows at a time, and BLAS over them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tritensor.kernels.convolution import depthwise_llvm, direct_llvm, tiles_llvm, tiles_weight_llvm
from tritensor.kernels.convolution.columns import gather, pointer
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.plans import Phase, Plan, of_phase_sets, of_windows
from tritensor.llvm import products, threads

_BLOCK = 4 << 20  # bytes of columns at a time
_STACK = 1 << 20  # bytes of columns of several images: more would leave the cache
_LARGE = 4 << 20  # bytes of an image's padded copy and results from which they are made in parts
_LARGE_WEIGHT = 1 << 17  # elements of a weight from which threads share its turning
_LINE = 64  # bytes of a line of the cache
_KEEP = 64 << 20  # larger buffers are not kept
_WIDE = 256  # columns from which a product of matrices runs at full speed
_local = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory that is used again by the next call of the same name: fresh pages cost more than the work on them. It begins at a line of the
    cache."""
    size = math.prod(shape) * dtype.itemsize
    if size > _KEEP:
        return np.empty(shape, dtype)
    held = getattr(_local, name, None)
    if held is None or held.nbytes < size:
        room = np.empty(size + _LINE, np.uint8)
        held = room[-pointer(room) % _LINE :]
        setattr(_local, name, held)
    return held[:size].view(dtype).reshape(shape)  # type: ignore[no-any-return]


def _blocks(x: np.ndarray, plan: Plan, groups: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Images and places in them (both slices), with the columns of what they read: a matrix for each image, (images, G, C / G * taps, places), or,
    where one alone would be narrow, one for several, (G, C / G * taps, images * places). A large image comes in parts, some rows at a time."""
    n, channels = x.shape[:2]
    taps, places = len(plan.shifts), plan.places
    image = channels * taps * places * x.itemsize
    if plan.bare and places >= _WIDE:
        yield slice(0, n), slice(0, places), x.reshape(n, groups, channels // groups, places)
        return
    if image > _BLOCK:
        yield from _rows(x, plan, groups)
        return
    stacked = places >= _WIDE
    images = min(n, max(1, _STACK // image, 0 if stacked else min(-(-_WIDE // places), _BLOCK // image)))
    for first in range(0, n, images):
        some = slice(first, min(first + images, n))
        count = some.stop - some.start
        cols = scratch("cols", (count, channels, taps, places) if stacked else (channels, taps, count, places), x.dtype)
        onto = cols.transpose(1, 2, 0, 3) if stacked else cols
        gather(x[some], onto.reshape(*onto.shape[:3], *plan.outs), plan)
        rows = channels // groups * taps
        yield some, slice(0, places), cols.reshape((count, groups, rows, places) if stacked else (groups, rows, count * places))


def _rows(x: np.ndarray, plan: Plan, groups: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """The same of images that are large: some rows of one at a time, (1, G, C / G * taps, places)."""
    n, channels = x.shape[:2]
    taps, outer = len(plan.shifts), plan.outs[0]
    inner = plan.places // outer
    rows = max(1, _BLOCK // (channels * taps * inner * x.itemsize))
    for i in range(n):
        for low in range(0, outer, rows):
            high = min(low + rows, outer)
            part, read = plan.part(low, high)
            cols = scratch("cols", (channels, taps, 1, (high - low) * inner), x.dtype)
            gather(x[i : i + 1, :, read], cols.reshape(*cols.shape[:3], *part.outs), part)
            yield slice(i, i + 1), slice(low * inner, high * inner), cols.reshape(1, groups, channels // groups * taps, -1)


def _products(x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> None:
    """y (N, M, *outs), in C order: what the columns of x (N, C, *size) give with weights (G, M / G, C / G * taps)."""
    groups, per_group = weights.shape[:2]
    if groups == 1 and not plan.bare and direct_llvm.fits(x, per_group, weights.shape[2], plan):
        direct_llvm.products(x, weights, bias, plan, y)
        return
    if _in_tiles(x, plan, per_group * weights.shape[2]):
        for part, read, made in _parts(x, plan, y.shape[1]):
            results = [tiles_llvm.Results(0, per_group, tiles_llvm.back(x.dtype, part))]
            tiles_llvm.products(np.ascontiguousarray(x[:, :, read]), weights, bias, part, y[:, :, made], results, scratch)
        return
    flat = y.reshape(y.shape[0], groups, per_group, plan.places)
    for some, places, cols in _blocks(x, plan, groups):
        onto = flat[some, :, :, places]
        if cols.ndim == 4:
            products.matmul(weights, cols, out=onto)
        else:
            product = scratch("product", (groups, per_group, cols.shape[2]), y.dtype)
            products.matmul(weights, cols, out=product)
            onto[...] = product.reshape(groups, per_group, len(onto), -1).transpose(2, 0, 1, 3)
        if bias is not None:
            onto += bias.reshape(groups, per_group, 1)


def _rows_of(x: np.ndarray) -> np.ndarray:
    """Each image as a row."""
    return x.reshape(x.shape[0], -1)


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


def _in_tiles(x: np.ndarray, plan: Plan, weight: int) -> bool:
    """Whether tiles take a convolution of x with so many elements of weight to a group."""
    return not (plan.bare and plan.places >= _WIDE) and tiles_llvm.fits(x.dtype, plan, weight)


def correlate(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, s: Geometry) -> np.ndarray:
    """y[n, o, r, q] = sum x[n, c, sh r + dh i - ph, sw q + dw j - pw] w[o, c, i, j] + bias[o]; (N, O, *outs)."""
    y = np.empty((s.batch, s.out, *s.outs), x.dtype)
    if y.size == 0:
        return y
    if s.whole:
        products.matmul(_rows_of(x), w.reshape(s.out, -1).T, out=_rows_of(y))
        if bias is not None:
            y += bias.reshape(-1, *(1,) * len(s.size))
        return y
    x, plan = np.ascontiguousarray(x), of_windows(s)
    if s.channels == s.groups:
        several = s.out > s.groups  # to a channel: tiles read it once for some
        first = (depthwise_llvm.fits(x, plan) and not several) or not _in_tiles(x, plan, s.out // s.groups * s.taps)
        if first and depthwise_llvm.correlate(x, w, bias, plan, y):
            return y
    _products(x, np.ascontiguousarray(w).reshape(s.groups, s.out // s.groups, -1), bias, plan, y)
    return y


def input_gradient(g: np.ndarray, w: np.ndarray, bias: np.ndarray | None, s: Geometry) -> np.ndarray:
    """dx[n, c, h, v] = sum of g[n, o, r, q] w[o, c, i, j] over h = sh r + dh i - ph, v = sw q + dw j - pw, + bias[c]; (N, C, *size).

    The cells of a stride's phase are a convolution of g, of stride 1, with the taps that reach them.
    """
    dx = np.empty((s.batch, s.channels, *s.size), g.dtype)
    if dx.size == 0:
        return dx
    if g.size == 0:
        dx[...] = 0 if bias is None else bias.reshape(-1, *(1,) * len(s.size))
        return dx
    if s.whole:
        product = products.matmul(_rows_of(g), w.reshape(s.out, -1)).reshape(dx.shape)
        return product if bias is None else np.add(product, bias.reshape(-1, *(1,) * len(s.size)), out=product)
    g = np.ascontiguousarray(g)
    taps = w.reshape(s.groups, s.out // s.groups, s.channels // s.groups, s.taps)
    weight = w.size // s.groups
    for phases in of_phase_sets(s):
        if _in_tiles(g, phases[0].plan, weight) and not _others(g, s, phases[0].plan):
            _phases(g, taps, bias, s, phases, dx)
            continue
        for phase in phases:
            _phase(g, taps, bias, s, phase, dx)
    return dx


def _others(g: np.ndarray, s: Geometry, plan: Plan) -> bool:
    """Whether other machine code, which uses what only some processors have, takes a phase of the gradient to the input."""
    if s.channels == s.out == s.groups:
        return depthwise_llvm.fits(g, plan)
    return s.groups == 1 and not plan.bare and direct_llvm.fits(g, s.channels, s.out * len(plan.shifts), plan)


def _weights(taps: np.ndarray, phase: Phase) -> np.ndarray:
    """The weights (G, C / G, O / G * taps) of the taps of a phase, of all (G, O / G, C / G, taps)."""
    groups, _, channels, count = taps.shape
    some = taps if len(phase.taps) == count else taps[..., list(phase.taps)]
    turned = some.transpose(0, 2, 1, 3)
    if turned.size < _LARGE_WEIGHT:
        return turned.reshape(groups, channels, -1)
    copied = np.empty(turned.shape, turned.dtype)
    threads.share(lambda low, high: np.copyto(copied[:, low:high], turned[:, low:high]), channels)
    return copied.reshape(groups, channels, -1)


def _phases(g: np.ndarray, taps: np.ndarray, bias: np.ndarray | None, s: Geometry, phases: tuple[Phase, ...], dx: np.ndarray) -> None:
    """Cells of dx of phases of one plan, in one product."""
    per_group = s.channels // s.groups
    weights = _weights(taps, phases[0]) if len(phases) == 1 else np.concatenate([_weights(taps, phase) for phase in phases], 1)
    if bias is not None and len(phases) > 1:
        bias = np.concatenate([bias.reshape(s.groups, per_group)] * len(phases), 1)
    weights = np.ascontiguousarray(weights)
    for part, read, made in _parts(g, phases[0].plan, len(phases) * s.channels):
        results = []
        for i, phase in enumerate(phases):
            start = (phase.start[0] + made.start * s.stride[0], *phase.start[1:])
            results.append(tiles_llvm.Results(i * per_group, per_group, tiles_llvm.spread_over(g.dtype, part, s.size, start, s.stride)))
        tiles_llvm.products(np.ascontiguousarray(g[:, :, read]), weights, bias, part, dx, results, scratch)


def _phase(g: np.ndarray, taps: np.ndarray, bias: np.ndarray | None, s: Geometry, phase: Phase, dx: np.ndarray) -> None:
    """Cells of dx of one phase."""
    every: Any = (..., *[slice(a, None, step) for a, step in zip(phase.start, s.stride, strict=True)])
    cells = dx[every]
    if not phase.taps:
        cells[...] = 0 if bias is None else bias.reshape(-1, *(1,) * len(s.size))
        return
    onto = cells if cells.flags.c_contiguous else scratch("phase", cells.shape, dx.dtype)
    weights = np.ascontiguousarray(_weights(taps, phase))
    if not (s.channels == s.out == s.groups and depthwise_llvm.correlate(g, weights, bias, phase.plan, onto)):
        _products(g, weights, bias, phase.plan, onto)
    if onto is not cells:
        cells[...] = onto


def _weight_in_tiles(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> np.ndarray | None:
    """tiles_weight.gradient, of large images part by part."""
    total: np.ndarray | None = None
    for part, read, made in _parts(x, plan, g.shape[1]):
        found = tiles_weight_llvm.gradient(np.ascontiguousarray(x[:, :, read]), np.ascontiguousarray(g[:, :, made]), groups, part, scratch)
        if found is None:
            return None
        total = found if total is None else np.add(total, found, out=total)
    return total


def _ways_to_weight(x: np.ndarray, s: Geometry, plan: Plan) -> list[Callable[..., np.ndarray | None]]:
    """What may give the gradient to a weight, the fastest first; each may leave it to the next, and all to BLAS."""
    depthwise_alone = s.channels == s.out == s.groups
    if depthwise_alone and depthwise_llvm.fits(x, plan):
        return [depthwise_llvm.weight_gradient]
    ways: list[Callable[..., np.ndarray | None]] = [] if plan.bare else [_weight_in_tiles]
    return [*ways, depthwise_llvm.weight_gradient] if depthwise_alone else ways


def weight_gradient(x: np.ndarray, g: np.ndarray, s: Geometry) -> np.ndarray:
    """dw[o, c, i, j] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r + dh i - ph, sw q + dw j - pw]."""
    shape = (s.out, s.channels // s.groups, *s.kernel)
    if g.size == 0:
        return np.zeros(shape, x.dtype)
    if s.whole:
        return products.matmul(_rows_of(g).T, _rows_of(x)).reshape(shape)
    x, g, plan = np.ascontiguousarray(x), np.ascontiguousarray(g), of_windows(s)
    for way in _ways_to_weight(x, s, plan):
        found = way(x, g, s.groups, plan)
        if found is not None:
            return found.reshape(shape)
    per_group = s.out // s.groups
    flat = g.reshape(s.batch, s.groups, per_group, plan.places)
    total: np.ndarray | None = None
    for some, places, cols in _blocks(x, plan, s.groups):
        given = flat[some, :, :, places]
        if cols.ndim == 4:
            product = products.matmul(given, cols.transpose(0, 1, 3, 2)).sum(0)
        else:
            rows = scratch("rows", (s.groups, per_group, cols.shape[2]), g.dtype)
            rows.reshape(s.groups, per_group, len(given), -1)[...] = given.transpose(1, 2, 0, 3)
            product = products.matmul(rows, cols.transpose(0, 2, 1))
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total.reshape(shape)
