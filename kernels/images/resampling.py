"""resample: an image at another size, each axis by its own map (nearest, linear, cubic, mean, antialiased), and the adjoint of that map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.images import resampling_bytes
from tritensor.kernels.images import resampling_cpu as cpu
from tritensor.kernels.images.axis_kernel import map_axes
from tritensor.kernels.images.axis_maps import MODES, UNIT, Axis, axis_of
from tritensor.kernels.images.resampling_bytes import in_bytes
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, Work, op, ops, refuse_kind
from tritensor.ops.table.signature import by_names

Sizes = tuple[int, ...]
Factors = tuple[float | None, ...]


def _axes_of(cells: Sizes, size: Sizes, mode: str, align_corners: bool, factors: Factors, dtype: np.dtype) -> list[Axis]:
    """The axes of a resampling of `cells` to `size`."""
    return [axis_of(n, m, MODES.index(mode), align_corners, f, dtype) for n, m, f in zip(cells, size, factors, strict=True)]


def _check(name: str, x: Any, size: Sizes, mode: str, factors: Factors) -> None:
    spatial = len(x.shape) - 2
    if spatial not in (1, 2, 3) or len(size) != spatial or len(factors) != spatial:
        raise ShapeError(f"{name}: x {tuple(x.shape)}, size {tuple(size)}: x must be (N, C, one to three axes), with a size for each axis")
    if min(size) < 1 or 0 in x.shape[2:]:
        raise ShapeError(f"{name}: x {tuple(x.shape)}, size {tuple(size)}: every axis must have an element, before and after")
    refuse_kind(name, x.dtype, ("float", "uint") if mode != "area" else ("float",))


def _shape(x: Any, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> Spec:
    _check("resample", x, size, mode, factors)
    return Spec((*x.shape[:2], *size), x.dtype)


def _filter(t: np.ndarray, mode: str) -> np.ndarray:
    """What a cell at distance t weighs: a tent, or Keys's kernel ("Cubic convolution interpolation for digital image processing", 1981)."""
    t = np.abs(t)
    if mode.startswith("linear"):
        return np.maximum(1 - t, 0)
    a = -0.5 if mode == "cubic-aa" else -0.75
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _matrix(axis: Axis, mode: str, align_corners: bool) -> np.ndarray:
    """The weights (out, size) by which outputs take cells."""
    n, m, scale, _ = axis
    o, cells = np.arange(m)[:, None], np.arange(n)
    if mode.startswith("nearest"):
        return (cells == np.minimum((o + (0.5 if mode == "nearest-exact" else 0)) * scale // 1, n - 1)).astype(float)
    if mode == "area":
        inside = (cells >= o * n // m) & (cells < -(-(o + 1) * n // m))
        return inside / inside.sum(1, keepdims=True)
    if mode.endswith("-aa"):
        weights = _filter((cells + 0.5 - scale * (o + 0.5)) / max(scale, 1), mode)
        return weights / weights.sum(1, keepdims=True)
    at = o * scale if align_corners else (o + 0.5) * scale - 0.5
    if mode == "linear":
        return _filter(at.clip(0, n - 1) - cells, mode)
    beyond = np.arange(-2, n + 3)  # a cell beyond the edge is the one at the edge
    return _filter(at - beyond, mode) @ (beyond.clip(0, n - 1)[:, None] == cells)


def _along(x: np.ndarray, dim: int, weights: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.moveaxis(x, dim, -1) @ weights.T, -1, dim)


def _reference(x: np.ndarray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> np.ndarray:
    """x (N, C, one to three axes) at another `size`, each axis by the map `mode`; `factors`: the scales that the user gave and means, or None."""
    y = x
    for dim, axis in reversed([*enumerate(_axes_of(x.shape[2:], size, mode, align_corners, factors, x.dtype), 2)]):
        weights = _matrix(axis, mode, align_corners)
        y = _along_bytes(y, dim, weights) if x.dtype == np.uint8 and not mode.startswith("nearest") else _along(y, dim, weights)
    return y


def _along_bytes(x: np.ndarray, dim: int, weights: np.ndarray) -> np.ndarray:
    """As PyTorch maps bytes: weights as multiples of 2^-p, the largest in 16 bits, and what is summed rounded to bytes after each axis."""
    if len(weights) == x.shape[dim]:
        return x
    p = next((p for p in range(22) if int(0.5 + weights.max() * 2 ** (p + 1)) >= 1 << 15), 22)
    whole = np.trunc(weights * 2**p + np.where(weights < 0, -0.5, 0.5)).astype(np.int64)
    return ((_along(x.astype(np.int64), dim, whole) + (1 << p >> 1)) >> p).clip(0, 255).astype(np.uint8)


def _cpu(x: np.ndarray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> np.ndarray:
    axes = _axes_of(x.shape[2:], size, mode, align_corners, factors, x.dtype)
    if in_bytes(x.dtype, MODES.index(mode)):
        return resampling_bytes.resample_axes(x, axes, MODES.index(mode), align_corners)
    return cpu.resample_axes(x, axes, MODES.index(mode), align_corners)


def _forward(x: CudaArray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> CudaArray:
    axes = _axes_of(x.shape[2:], size, mode, align_corners, factors, x.dtype)
    return (resampling_bytes.map_axes if in_bytes(x.dtype, MODES.index(mode)) else map_axes)(x, axes, MODES.index(mode), align_corners)


def _adjoint_shape(g: Any, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> Spec:
    _check("resample_adjoint", g, size, mode, factors)
    return Spec((*g.shape[:2], *size), g.dtype)


def _adjoint_reference(g: np.ndarray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> np.ndarray:
    """resample's gradient to its x (N, C, *size): every cell gets g of the outputs that took it, by the weights they took it with."""
    y = g
    for dim, axis in enumerate(_axes_of(size, g.shape[2:], mode, align_corners, factors, g.dtype), 2):
        y = _along(y, dim, _matrix(axis, mode, align_corners).T)
    return y


def _adjoint_cpu(g: np.ndarray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> np.ndarray:
    axes = _axes_of(size, g.shape[2:], mode, align_corners, factors, g.dtype)
    return cpu.resample_axes(g, axes, MODES.index(mode), align_corners, adjoint=True)


def _adjoint_forward(g: CudaArray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> CudaArray:
    axes = _axes_of(size, g.shape[2:], mode, align_corners, factors, g.dtype)
    return map_axes(g, axes, MODES.index(mode), align_corners, adjoint=True)


def _gradient(of: Callable[..., Any], shape: str) -> Callable[..., Any]:
    """The gradient of a map or its adjoint by a function of the other, to the size of the input whose `shape` is named so."""
    how = ("mode", "align_corners", "factors")
    return by_names(lambda g, **given: of(g, size=given.pop(shape)[2:], **given), shape, *how)


def _size_of_roundings(x: np.ndarray, results: Sizes) -> np.ndarray:
    """What roundings are measured by: a position among n cells is rounded, too, which moves n roundings of weight from one cell to the next."""
    n = max(*x.shape[2:], *results)
    taken = n * math.prod(max(n / m, 1.0) for n, m in zip(x.shape[2:], results, strict=True))
    return np.full((*x.shape[:2], *results), taken * np.abs(x).max(initial=0.0))


def _of_output(x: np.ndarray, *, size: Sizes, mode: str, align_corners: bool, factors: Factors) -> np.ndarray:
    return _size_of_roundings(x, size)


def _of_gradient(g: np.ndarray, values: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[np.ndarray]:
    return (_size_of_roundings(g, values[0].shape[2:]),)


# (cells, outputs, mode, align_corners, factors): antialiased and cubic maps in one dimension here, since the emulator takes its time
CASES: list[tuple[Sizes, Sizes, str, bool, Factors]] = [
    ((3, 4), (2, 5), "nearest", False, (None, 1.3)),
    ((2, 1, 3), (3, 1, 4), "nearest-exact", False, (None,) * 3),
    ((4, 3), (5, 2), "linear", False, (None, 0.7)),
    ((4,), (6,), "linear", True, (None,)),
    ((6,), (8,), "cubic", False, (1.4,)),
    ((5,), (1,), "cubic", True, (None,)),
    ((5, 3), (2, 4), "area", False, (None, None)),
    ((7,), (4,), "linear-aa", False, (None,)),
    ((7,), (4,), "cubic-aa", False, (None,)),
    ((130,), (150,), "nearest", False, (None,)),  # more than one block
]  # fmt: skip


def _cases(rng: np.random.Generator, adjoint: bool) -> list[Sample]:
    found = []
    for i, (cells, out, mode, align, factors) in enumerate(CASES[::2] if adjoint else CASES):
        given, size = (out, cells) if adjoint else (cells, out)
        x = rng.standard_normal((1, 1 + i % 2, *given))
        if mode == "linear" and len(size) == 2:  # channels innermost
            x = np.moveaxis(rng.standard_normal((2, *given, 3)), -1, 1)
        found.append(Sample(x, size=size, mode=mode, align_corners=align, factors=factors))
    return [*found, Sample(np.zeros((0, 2, 4)), size=(3,), mode="linear", align_corners=False, factors=(None,))]


def _samples(rng: np.random.Generator) -> list[Sample]:
    whole = rng.integers(0, 256, (1, 2, 5, 4)).astype(np.uint8)
    plain: dict[str, Any] = {"size": (3, 7), "align_corners": False, "factors": (None, None)}
    return [*_cases(rng, False), *[Sample(whole, mode=m, **plain) for m in ("nearest", "linear", "cubic", "linear-aa")]]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal((8, 32, 64, 64))
    plain: dict[str, Any] = {"align_corners": False, "factors": (None, None)}
    return [Sample(x, size=(128, 128), mode="linear", **plain), Sample(x, size=(128, 128), mode="nearest", **plain)]


_TAPS = {"linear": 2, "cubic": 4}


def _work(x: Any, **attrs: Any) -> Work:
    """Two operations for each tap of each output; both images once."""
    y = math.prod(x.shape[:2]) * math.prod(attrs["size"])
    taps = _TAPS.get(attrs["mode"], 1) ** len(attrs["size"])
    return Work(0 if MODES.index(attrs["mode"]) in UNIT else 2 * y * taps, (math.prod(x.shape) + y) * x.dtype.itemsize)


def _adjoint_work(g: Any, **attrs: Any) -> Work:
    """As of the map itself: two operations for each tap of each element of g."""
    taps = _TAPS.get(attrs["mode"], 1) ** len(attrs["size"])
    return Work(2 * math.prod(g.shape) * taps, (math.prod(g.shape) + math.prod(g.shape[:2]) * math.prod(attrs["size"])) * g.dtype.itemsize)


op(
    "resample", _reference, cpu=_cpu, shape=_shape, forward=_forward, samples=_samples, sizes=_sizes, work=_work,
    rule=_gradient(lambda g, **how: ops.resample_adjoint(g, **how), "x_shape"), backward=_gradient(_adjoint_forward, "x_shape"),
    cpu_backward=_gradient(_adjoint_cpu, "x_shape"), layout="images", dtypes=FLOATS, condition=(_of_output, _of_gradient),
)  # fmt: skip
op(
    "resample_adjoint", _adjoint_reference, cpu=_adjoint_cpu, shape=_adjoint_shape, forward=_adjoint_forward,
    rule=_gradient(lambda g, **how: ops.resample(g, **how), "g_shape"), backward=_gradient(_forward, "g_shape"),
    cpu_backward=_gradient(_cpu, "g_shape"), samples=lambda rng: _cases(rng, True), layout="images",
    sizes=lambda rng: [Sample(rng.standard_normal((8, 32, 128, 128)), size=(64, 64), mode="linear", align_corners=False, factors=(None, None))],
    work=_adjoint_work, condition=(_of_output, _of_gradient),
)  # fmt: skip
