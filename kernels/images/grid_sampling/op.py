"""grid_sample: an image or a volume read at the positions of a grid, with gradients to both."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.images.grid_sampling import cpu, gpu
from tritensor.kernels.images.grid_sampling.rule import rule
from tritensor.kernels.parts.cpu.blocks import SILENT, upcast
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, refuse_kind, refuse_mixed


def _shape(x: Any, grid: Any, *, mode: str, padding_mode: str, align_corners: bool) -> Spec:
    given = f"grid_sample: input {tuple(x.shape)}, grid {tuple(grid.shape)}"
    axes = len(x.shape) - 2
    if axes not in (2, 3) or len(grid.shape) != axes + 2:
        raise ShapeError(
            f"{given}: give an image (N, C, H, W) with a grid (N, h, w, 2), or a volume (N, C, D, H, W) with a grid (N, d, h, w, 3)"
        )
    if grid.shape[-1] != axes:
        raise ShapeError(f"{given}: the grid's last size must be {axes}, a number for each axis of the input")
    if grid.shape[0] != x.shape[0]:
        raise ShapeError(f"{given}: both must have one batch size")
    if 0 in x.shape[2:]:
        raise ShapeError(f"{given}: every axis of the input must have an element")
    refuse_kind("grid_sample", x.dtype, ("float",), "input")
    refuse_mixed("grid_sample", ("input", x), ("grid", grid))
    # PyTorch has no tricubic sampling either
    if mode == "bicubic" and axes == 3:
        raise ShapeError(f"{given}: mode 'bicubic' is for images; a volume takes 'bilinear' or 'nearest'")
    return Spec((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def _show(at: np.ndarray, n: int, padding: str, align: bool) -> np.ndarray:
    """Positions among n cells as the padding shows them: mirrored at the borders, then cut to the image; or as they are."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
        flips, rest = np.divmod(np.abs(at - low), span or 1)
        at = low + np.where(flips % 2 == 1, span - rest, rest)
    return np.fmin(np.fmax(at, 0), n - 1)


def _axis_taps(u: np.ndarray, n: int, mode: str, padding: str, align: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """The cells of an axis that positions u in -1..1 take, each with its weight."""
    at = (u + 1) / 2 * (n - 1) if align else ((u + 1) * n - 1) / 2
    if mode == "bicubic":  # Keys's kernel with a = -0.75, over the four cells around
        low, t = np.floor(at), at - np.floor(at)
        near, far = (lambda d: (1.25 * d - 2.25) * d * d + 1), (lambda d: ((-0.75 * d + 3.75) * d - 6) * d + 3)
        weights = far(t + 1), near(t), near(1 - t), far(2 - t)
        return [(_show(low + k, n, padding, align), weight) for k, weight in zip(range(-1, 3), weights, strict=True)]
    at = _show(at, n, padding, align)
    if mode == "nearest":
        return [(np.rint(at), np.ones_like(at))]
    low = np.floor(at)
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def _reference(x: np.ndarray, grid: np.ndarray, *, mode: str, padding_mode: str, align_corners: bool) -> np.ndarray:
    """x (N, C, H, W) at grid (N, h, w, 2) of positions in -1..1, or a volume with its: (N, C, h, w)."""
    sizes, images = x.shape[2:], np.arange(len(x)).reshape(-1, *(1,) * (grid.ndim - 2))
    axes = [_axis_taps(grid[..., -1 - d], n, mode, padding_mode, align_corners) for d, n in enumerate(sizes)]
    y = np.zeros((len(x), *grid.shape[1:-1], x.shape[1]), x.dtype)
    for taps in itertools.product(*axes):
        inside, weight = np.ones(grid.shape[:-1], np.bool_), np.ones(grid.shape[:-1], x.dtype)
        for (cell, by), n in zip(taps, sizes, strict=True):
            inside, weight = inside & (cell >= 0) & (cell < n), weight * by
        at: Any = (images, slice(None), *[np.where(inside, cell, 0).astype(int) for cell, _ in taps])
        y += np.where(inside, weight, 0)[..., None] * x[at]  # type: ignore[arg-type]
    return np.moveaxis(y, -1, 1)


def _flat(grid: np.ndarray) -> np.ndarray:
    return grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), grid.shape[-1])


def _cpu(x: np.ndarray, grid: np.ndarray, *, mode: str, padding_mode: str, align_corners: bool) -> np.ndarray:
    a, b = upcast(x), upcast(grid)
    y = cpu.sample(a, _flat(b), mode, padding_mode, align_corners)
    return y.astype(x.dtype, copy=False).reshape(*x.shape[:2], *grid.shape[1:-1])


def _forward(x: CudaArray, grid: CudaArray, *, mode: str, padding_mode: str, align_corners: bool) -> CudaArray:
    return gpu.sample(x, grid, mode, padding_mode, align_corners)


def _backward(
    g: CudaArray, x: CudaArray, grid: CudaArray, mode: str, padding_mode: str, align_corners: bool, needs: tuple[bool, ...]
) -> tuple[CudaArray | None, CudaArray | None]:
    return (
        gpu.to_image(g, grid, x.shape[2:], mode, padding_mode, align_corners) if needs[0] else None,
        gpu.to_grid(g, x, grid, mode, padding_mode, align_corners) if needs[1] else None,
    )


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, grid: np.ndarray, mode: str, padding_mode: str, align_corners: bool, needs: tuple[bool, ...]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    a, b = upcast(x), _flat(upcast(grid))
    arriving = np.ascontiguousarray(upcast(g)).reshape(*x.shape[:2], b.shape[1])
    how = mode, padding_mode, align_corners
    with SILENT():
        dx = cpu.to_image(arriving, b, x.shape[2:], *how).astype(x.dtype, copy=False) if needs[0] else None
        return dx, cpu.to_grid(arriving, a, b, *how).astype(grid.dtype, copy=False).reshape(grid.shape) if needs[1] else None


def _of_output(x: np.ndarray, grid: np.ndarray, *, mode: str, padding_mode: str, align_corners: bool) -> np.ndarray:
    """What roundings are measured by: a position among n cells is rounded, too, which moves n roundings of weight from one cell to the next."""
    return np.full((*x.shape[:2], *grid.shape[1:-1]), max(x.shape[2:]) * np.abs(x).max(initial=0.0))


def _of_gradients(g: np.ndarray, values: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    x, grid = values
    n, most = max(x.shape[2:]), np.abs(g).max(initial=0.0)
    positions = math.prod(grid.shape[1:-1])
    return np.full(x.shape, n * positions * most), np.full(grid.shape, n * n * x.shape[1] * most * np.abs(x).max(initial=0.0))


def _samples(rng: np.random.Generator) -> list[Sample]:
    def case(size: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool, smooth: bool = True) -> Sample:
        grid = rng.uniform(-1.4, 1.4, (size[0], *out, len(out)))
        return Sample(rng.standard_normal(size), grid, mode=mode, padding_mode=padding, align_corners=align, smooth=smooth)

    return [
        case((2, 2, 3, 4), (3, 2), "bilinear", "zeros", False),
        case((1, 2, 3, 4), (2, 3), "bilinear", "border", True),
        case((1, 1, 3, 4), (2, 2), "bicubic", "reflection", False),
        case((2, 2, 3, 4), (2, 3), "nearest", "border", False),
        case((1, 1, 2, 3, 4), (1, 2, 2), "bilinear", "reflection", True),
        Sample(np.zeros((0, 2, 3, 3)), np.zeros((0, 2, 2, 2)), mode="bilinear", padding_mode="zeros", align_corners=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    grid = rng.uniform(-1, 1, (8, 64, 64, 2))
    return [Sample(rng.standard_normal((8, 32, 64, 64)), grid, mode="bilinear", padding_mode="zeros", align_corners=False)]


def _work(x: Any, grid: Any, *, mode: str, padding_mode: str, align_corners: bool) -> Work:
    """Two operations for each tap of each output; image, grid and output once."""
    y = math.prod(x.shape[:2]) * math.prod(grid.shape[1:-1])
    return Work(2 * y * gpu.TAPS[gpu.MODES[mode]] ** grid.shape[-1], (math.prod(x.shape) + math.prod(grid.shape) + y) * x.dtype.itemsize)


op(
    "grid_sample", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=rule, backward=_backward, cpu_backward=_cpu_backward,
    samples=_samples, sizes=_sizes, work=_work, condition=(_of_output, _of_gradients),
)  # fmt: skip
