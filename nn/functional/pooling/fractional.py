"""Fractional max pooling: windows whose steps are drawn, so that a size shrinks by any factor (Graham 2014, Fractional Max-Pooling)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.nn.functional.window_arguments import Sizes, lacks_batch, to_axes
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import rand
from tritensor.tensor.functions.creation.sequences import arange
from tritensor.tensor.public_api.publish import checked

Ratios = float | Sequence[float]


def output_sizes(name: str, axes: int, size: Sequence[int], output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """The size of the result, given itself or as a part of the input's."""
    if output_size is None and output_ratio is None:
        raise ArgumentError(f"{name}: neither output_size nor output_ratio is given; give one of them")
    if output_size is not None:
        return to_axes(name, "output_size", output_size, axes)
    ratios = (output_ratio,) * axes if isinstance(output_ratio, int | float) else tuple(output_ratio)
    if len(ratios) != axes:
        raise ShapeError(f"{name}: output_ratio {output_ratio!r} has {len(ratios)} numbers; give one, or {axes}")
    if not all(0 < r < 1 for r in ratios):
        raise ArgumentError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")
    return tuple(int(n * r) for n, r in zip(size, ratios, strict=True))


def _window_starts(sample: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """Where windows begin, (..., out), for samples u in [0, 1): floor((i + u) a) - floor(u a), a = (size - kernel) / (out - 1), the last at the end."""
    u = sample.unsqueeze(-1)
    last = ops.full(shape=(*sample.shape, 1), value=size - kernel, dtype=sample.dtype.numpy, device=sample.device).long()
    if out == 1:
        return last
    step = (size - kernel) / (out - 1)
    at = arange(out - 1, dtype=sample.dtype, device=sample.device)
    begun = ops.floor((u + at) * step) - ops.floor(u * step)
    return ops.cat(begun.long(), last, dim=sample.ndim)  # type: ignore[no-any-return]


def _max_pool(
    name: str, axes: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    single = lacks_batch(name, input, axes)
    if input.dtype.kind != "float":
        raise DTypeError(f"{name}: input is {input.dtype.name}; {name} takes float types; cast it with .to(float32)")
    if 0 in input.shape[1:]:
        raise ShapeError(f"{name}: input {tuple(input.shape)} has a size of 0, which only its first dimension may have")
    size, kernel = tuple(input.shape[-axes:]), to_axes(name, "kernel_size", kernel_size, axes)
    out = output_sizes(name, axes, size, output_size, output_ratio)
    spare = axes - 2  # of volumes PyTorch wants an element more than the windows need
    if min(kernel) < 1 or min(out) < 1 or any(m + k - 1 + spare > n for n, m, k in zip(size, out, kernel, strict=True)):
        less = "kernel_size" if spare else "kernel_size - 1"
        raise ShapeError(
            f"{name}: input {tuple(input.shape)}, kernel_size {kernel}: an output of {out} cannot be had; sizes from 1 to the input's less {less} can"
        )
    batch, channels = (1 if single else input.shape[0]), input.shape[-axes - 1]
    if samples is None:
        samples = rand(batch, channels, axes, dtype=input.dtype, device=input.device)
    if samples.ndim != 3 or samples.shape[0] < batch or samples.shape[1:] != (channels, axes):
        raise ShapeError(
            f"{name}: _random_samples {tuple(samples.shape)} for input {tuple(input.shape)}; give ({batch}, {channels}, {axes})"
        )
    if samples.dtype != input.dtype:
        raise DTypeError(f"{name}: _random_samples is {samples.dtype.name}, input {input.dtype.name}; give both the same")
    # where windows begin is drawn, not learned: no gradient goes to the samples
    places = _cell_indices(samples[:batch].detach(), size, out, kernel)  # (batch, channels, windows, cells)
    flat = input.reshape(batch, channels, math.prod(size))
    cells = ops.gather(flat, places.reshape(batch, channels, math.prod(places.shape[2:])), dim=2, called=name).reshape(places.shape)
    y, which = cells.max(-1)
    indices = ops.gather(places, which.unsqueeze(-1), dim=3, called=name).squeeze(-1)
    shape = (*input.shape[: input.ndim - axes], *out)
    return y.reshape(shape), indices.reshape(shape)


def _cell_indices(samples: Tensor, size: tuple[int, ...], out: tuple[int, ...], kernel: tuple[int, ...]) -> Tensor:
    """The flat places of every window's cells: (batch, channels, windows, cells)."""
    axes, lead = len(size), tuple(samples.shape[:2])
    order = (1, 0) if axes == 2 else (0, 1, 2)  # which sample is for which axis: PyTorch's for images begin with the width
    places: Any = 0
    for d in range(axes):
        starts = _window_starts(samples[..., order[d]], size[d], out[d], kernel[d])  # (batch, channels, out)
        cells = starts.unsqueeze(-1) + arange(kernel[d], device=samples.device)  # (batch, channels, out, kernel)
        around = [1] * (2 * axes)
        around[d], around[axes + d] = out[d], kernel[d]
        places = places * size[d] + cells.reshape(*lead, *around)
    return places.reshape(*lead, math.prod(out), math.prod(kernel))  # type: ignore[no-any-return]


@checked
def fractional_max_pool2d(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """Maxima of windows at drawn steps, one step for each image and channel: (batch, c, h, w) -> (batch, c, *output_size), or output_ratio times h and w.

    `_random_samples` (batch, c, 2) in [0, 1) stand for what is drawn. With return_indices also where each maximum stood.
    """
    y, indices = _max_pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)
    return (y, indices) if return_indices else y


@checked
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """fractional_max_pool2d with return_indices=True."""
    return _max_pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)


@checked
def fractional_max_pool3d(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """Maxima of windows at drawn steps, for each volume and channel: (batch, c, d, h, w) -> (batch, c, *output_size), as fractional_max_pool2d."""
    y, indices = _max_pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)
    return (y, indices) if return_indices else y


@checked
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """fractional_max_pool3d with return_indices=True."""
    return _max_pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)
