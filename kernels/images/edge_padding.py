"""edge_pad: an image surrounded by what it holds (mirrored, its edge repeated, or its other side), and the adjoint, which folds that back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.images import resampling_cpu as cpu
from tritensor.kernels.images.axis_kernel import map_axes
from tritensor.kernels.images.axis_maps import MODES, Axis
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops
from tritensor.ops.table.shape_rules import refuse_kind

Sizes = tuple[int, ...]
Sides = tuple[tuple[int, int], ...]  # before and after, for each axis behind (N, C); negative ones cut


def _axes_of(cells: Sizes, sides: Sides) -> list[Axis]:
    """The axes of a padding of `cells`."""
    return [Axis(n, n + before + after, 1.0, before) for n, (before, after) in zip(cells, sides, strict=True)]


def _check_axes(name: str, x: Any, sides: Sides) -> None:
    if len(x.shape) - 2 not in (1, 2, 3) or len(sides) != len(x.shape) - 2:
        raise ShapeError(f"{name}: x {tuple(x.shape)}, sides {sides}: x must be (N, C, one to three axes), with two sides for each axis")


def _check_sides(name: str, cells: Sizes, sides: Sides, mode: str) -> None:
    for n, (before, after) in zip(cells, sides, strict=True):
        # a mirror shows each cell but the one it stands on once
        most = n - 1 if mode == "reflect" else max(before, after)
        if n < 1 or max(before, after) > most or n + before + after < 1 or (mode == "circular" and min(before, after) < 0):
            raise ShapeError(f"{name}: sides {(before, after)} of an axis of {n} elements: mode {mode!r} cannot add or take off so many")


def _shape(x: Any, *, sides: Sides, mode: str) -> Spec:
    _check_axes("edge_pad", x, sides)
    _check_sides("edge_pad", tuple(x.shape[2:]), sides, mode)
    return Spec((*x.shape[:2], *[a.out for a in _axes_of(x.shape[2:], sides)]), x.dtype)


def _reference(x: np.ndarray, *, sides: Sides, mode: str) -> np.ndarray:
    """x (N, C, one to three axes) with `sides` elements added before and after along each axis: "reflect", "replicate" or "circular"."""
    added = [(max(before, 0), max(after, 0)) for before, after in sides]
    padded = np.pad(x, [(0, 0), (0, 0), *added], mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])  # type: ignore[call-overload]
    kept = [slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(padded.shape[2:], sides, strict=True)]
    return padded[(..., *kept)]  # type: ignore[no-any-return]


def _cpu(x: np.ndarray, *, sides: Sides, mode: str) -> np.ndarray:
    axes, last = _axes_of(x.shape[2:], sides), cpu.channels_last(x)
    lead = 1 if last else 2
    y = np.ascontiguousarray(np.moveaxis(x, 1, -1) if last else x)
    # cells that are cut off may still be shown on the other side: the general map knows which
    if min(min(s) for s in sides) < 0:
        return cpu.resample_axes(x, axes, MODES.index(mode), False)
    inner = (*y.shape[:lead], *[a.out for a in axes], *y.shape[lead + len(axes) :])
    out = np.empty(inner, y.dtype)
    out[(*(slice(None),) * lead, *[slice(a.shift, a.shift + a.size) for a in axes])] = y
    for d, a in enumerate(axes):  # along each axis, from what is filled so far along the others
        # a corner is what its row shows: axes go one after the other over what is there already
        filled = [slice(b.shift, b.shift + b.size) if k > d else slice(None) for k, b in enumerate(axes)]
        taken = cpu.padded_cells(a, MODES.index(mode))
        for border in (slice(0, a.shift), slice(a.shift + a.size, a.out)):
            if border.start < border.stop:
                at, of = list(filled), list(filled)
                at[d], of[d] = border, cpu.as_slice(a.shift + taken[border])  # type: ignore[call-overload]
                out[(*(slice(None),) * lead, *at)] = out[(*(slice(None),) * lead, *of)]
    return np.moveaxis(out, -1, 1) if last else out


def _forward(x: CudaArray, *, sides: Sides, mode: str) -> CudaArray:
    return map_axes(x, _axes_of(x.shape[2:], sides), MODES.index(mode))


def _cells(padded: Sizes, sides: Sides) -> Sizes:
    return tuple(n - before - after for n, (before, after) in zip(padded, sides, strict=True))


def _adjoint_shape(g: Any, *, sides: Sides, mode: str) -> Spec:
    refuse_kind("edge_pad_adjoint", g.dtype, ("uint", "int", "float", "complex"), "g")
    _check_axes("edge_pad_adjoint", g, sides)
    cells = _cells(tuple(g.shape[2:]), sides)
    _check_sides("edge_pad_adjoint", cells, sides, mode)
    return Spec((*g.shape[:2], *cells), g.dtype)


def _adjoint_reference(g: np.ndarray, *, sides: Sides, mode: str) -> np.ndarray:
    """edge_pad's gradient to its x: every cell gets the sum of g over the places that showed it."""
    cells = _cells(g.shape[2:], sides)
    shown = _reference(np.arange(math.prod(cells)).reshape(1, 1, *cells), sides=sides, mode=mode)[0, 0]
    total = np.zeros((*g.shape[:2], math.prod(cells)), g.dtype)
    at: Any = ..., shown
    np.add.at(total, at, g)  # type: ignore[arg-type]
    return total.reshape(*g.shape[:2], *cells)


def _adjoint_cpu(g: np.ndarray, *, sides: Sides, mode: str) -> np.ndarray:
    axes = _axes_of(_cells(g.shape[2:], sides), sides)
    if any(min(s) < 0 or (mode == "circular" and max(s) > a.size) for s, a in zip(sides, axes, strict=True)):
        return cpu.resample_axes(g, axes, MODES.index(mode), False, adjoint=True)
    last = cpu.channels_last(g)
    y = np.moveaxis(upcast(g), 1, -1) if last else upcast(g)
    for d, a in enumerate(axes):
        # an axis without a border folds nothing back
        if a.out == a.size:
            continue
        lead = (slice(None),) * ((1 if last else 2) + d)
        total = np.array(y[(*lead, slice(a.shift, a.shift + a.size))], order="C")
        taken = cpu.padded_cells(a, MODES.index(mode))
        for border in (slice(0, a.shift), slice(a.shift + a.size, a.out)):
            if border.start == border.stop:
                continue
            if mode != "replicate":  # the cells that a border shows are all different
                total[(*lead, cpu.as_slice(taken[border]))] += y[(*lead, border)]
            else:
                total[(*lead, taken[border.start])] += y[(*lead, border)].sum(len(lead))
        y = total
    y = y.astype(g.dtype) if y.dtype != g.dtype else np.array(y) if np.may_share_memory(y, g) else y
    return np.moveaxis(y, -1, 1) if last else y


def _adjoint_forward(g: CudaArray, *, sides: Sides, mode: str) -> CudaArray:
    return map_axes(g, _axes_of(_cells(g.shape[2:], sides), sides), MODES.index(mode), adjoint=True)


CASES: list[tuple[Sizes, Sides, str]] = [
    ((5,), ((2, 3),), "reflect"),
    ((3, 4), ((1, 2), (3, 0)), "reflect"),
    ((2, 4), ((1, -1), (-2, 3)), "reflect"),
    ((1, 3), ((3, 2), (0, 4)), "replicate"),
    ((3, 2, 2), ((1, 0), (-1, 2), (2, 1)), "replicate"),
    ((3, 5), ((3, 2), (1, 5)), "circular"),
    ((2,), ((3, 5),), "circular"),
    ((130,), ((20, 30),), "reflect"),  # more than one block
]  # fmt: skip


def _cases(rng: np.random.Generator, adjoint: bool) -> list[Sample]:
    found = []
    for i, (cells, sides, mode) in enumerate(CASES):
        given = tuple(a.out for a in _axes_of(cells, sides)) if adjoint else cells
        x = rng.standard_normal((1 + i % 2, 2, *given))
        if i == 1:  # channels innermost
            x = np.moveaxis(rng.standard_normal((2, *given, 3)), -1, 1)
        found.append(Sample(x, sides=sides, mode=mode))
    return found


def _samples(rng: np.random.Generator) -> list[Sample]:
    whole = rng.integers(-9, 9, (1, 2, 3, 4))
    return [
        *_cases(rng, False),
        Sample(whole, sides=((2, 1), (1, 3)), mode="reflect"),
        Sample(whole > 0, sides=((2, 1), (1, 3)), mode="circular"),
        Sample(np.zeros((0, 2, 4)), sides=((1, 2),), mode="replicate"),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal((8, 64, 128, 128)), sides=((3, 3), (3, 3)), mode="reflect")]


def _work(x: Any, *, sides: Sides, mode: str) -> Work:
    """No arithmetic; both images once."""
    return Work(0, (math.prod(x.shape) + math.prod(_shape(x, sides=sides, mode=mode).shape)) * x.dtype.itemsize)


def _adjoint_work(g: Any, *, sides: Sides, mode: str) -> Work:
    """An addition for each element of g; both images once."""
    return Work(math.prod(g.shape), (math.prod(g.shape) + math.prod(_adjoint_shape(g, sides=sides, mode=mode).shape)) * g.dtype.itemsize)


op(
    "edge_pad", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=lambda g, sides, mode: ops.edge_pad_adjoint(g, sides=sides, mode=mode),
    backward=lambda g, sides, mode: _adjoint_forward(g, sides=sides, mode=mode),
    cpu_backward=lambda g, sides, mode: _adjoint_cpu(g, sides=sides, mode=mode), samples=_samples, sizes=_sizes, work=_work, layout="images",
)  # fmt: skip
op(
    "edge_pad_adjoint", _adjoint_reference, cpu=_adjoint_cpu, shape=_adjoint_shape, forward=_adjoint_forward,
    rule=lambda gg, sides, mode: ops.edge_pad(gg, sides=sides, mode=mode), backward=lambda gg, sides, mode: _forward(gg, sides=sides, mode=mode),
    cpu_backward=lambda gg, sides, mode: _cpu(gg, sides=sides, mode=mode), samples=lambda rng: _cases(rng, True),
    sizes=lambda rng: [Sample(rng.standard_normal((8, 64, 134, 134)), sides=((3, 3), (3, 3)), mode="reflect")], work=_adjoint_work,
    layout="images", condition="absolute",
)  # fmt: skip
