"""Functions that PyTorch publishes beside nn.functional: padding by a constant, channels and pixels in other places, grids, distances of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ground.strides import is_channels_last, preserve_format
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import broadcast, one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import function, rename_function

Sides = Sequence[tuple[int, int]]


def parse_padding(name: str, input: Tensor, pad: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each dimension that `pad`, which begins with the last one, reaches, and (0, 0) for those in front."""
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError(
            f"{name}: {tuple(pad)} for input {tuple(input.shape)}: give two sizes per dimension, the last dimension first, at most {2 * input.ndim}"
        )
    pad = [one_integer(p) for p in pad]
    if not all(isinstance(p, int) for p in pad):
        raise TypeError(f"{name}: pad is {tuple(pad)!r}; give integers")
    return [(0, 0)] * (input.ndim - len(pad) // 2) + [(int(pad[2 * k]), int(pad[2 * k + 1])) for k in reversed(range(len(pad) // 2))]


def crop(x: Tensor, sides: Sides) -> Tensor:
    """x without what negative sizes take off."""
    if all(before >= 0 and after >= 0 for before, after in sides):
        return x
    return x[tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, sides, strict=True))]


@function(method=False)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """x with `value` around it: pad is (before, after) of the last dimension, then of the one before it, and so on; negative cuts off."""
    sides = parse_padding("constant_pad_nd", x, pad)
    for n, (before, after) in zip(x.shape, sides, strict=True):
        if n < max(-before, 0) + max(-after, 0) or n + before + after < 0:
            raise ShapeError(f"constant_pad_nd: {tuple(pad)} takes more off input {tuple(x.shape)} than there is")
    given = value.item() if isinstance(value, np.generic) else value
    filling = 0 if given is None else dtypes.as_element(x._array.dtype, given, "constant_pad_nd")
    added = tuple((max(before, 0), max(after, 0)) for before, after in sides)
    rest = crop(x, sides)
    if not any(before or after for before, after in added):
        return ops.copy(rest, memory_format=preserve_format)
    return ops.constant_pad(rest, sides=added, value=filling)


# -- channels and pixels in other places


def _check_image(name: str, x: Tensor, factor: int, what: str) -> tuple[tuple[int, ...], bool]:
    factor = one_integer(factor)
    if isinstance(factor, bool) or not isinstance(factor, int):
        raise TypeError(f"{name}: {what} is {factor!r}; give an integer")
    if x.ndim < 3:
        raise ShapeError(f"{name}: input {tuple(x.shape)} has {x.ndim} dimensions; give (..., channels, height, width)")
    if factor < 1:
        raise ArgumentError(f"{name}: {what} is {factor}; it must be at least 1")
    return tuple(x.shape), is_channels_last(x._array.shape, x.stride())


def _rearrange(x: Tensor, apart: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...], last: bool) -> Tensor:
    """x with its dimensions taken apart, put in another order and joined to `shape`; channels last again where `last`."""
    y = ops.permute(ops.reshape(x.contiguous(), shape=apart), dims=order)
    # One copy in the final order: joining the dims after it is a view.
    y = forget_base(ops.reshape(ops.copy(y), shape=shape))
    return ops.permute(y, dims=(0, len(shape) - 1, *range(1, len(shape) - 1))) if last else y


@function(method=False)
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one (Shi et al. 2016)."""
    shape, last = _check_image("pixel_shuffle", x, upscale_factor, "upscale_factor")
    r, (*lead, channels, h, w) = upscale_factor, shape
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: input {shape}: its {channels} channels are no multiple of upscale_factor squared, {r * r}; give such a number"
        )
    c, k = channels // (r * r), len(lead)
    if last:
        x = ops.permute(x, dims=(0, 2, 3, 1))
        return _rearrange(x, (lead[0], h, w, c, r, r), (0, 1, 4, 2, 5, 3), (lead[0], h * r, w * r, c), True)
    # (c, r, r, h, w) -> (c, h, r, w, r): each pixel's factors beside it.
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return _rearrange(x, (*lead, c, r, r, h, w), order, (*lead, c, h * r, w * r), False)


@function(method=False)
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """(..., c, h r, w r) -> (..., c r^2, h, w): pixel_shuffle undone."""
    shape, last = _check_image("pixel_unshuffle", x, downscale_factor, "downscale_factor")
    r, (*lead, c, height, width) = downscale_factor, shape
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: input {shape}: its height and width are no multiples of downscale_factor {r}")
    h, w, k = height // r, width // r, len(lead)
    if last:
        x = ops.permute(x, dims=(0, 2, 3, 1))
        return _rearrange(x, (lead[0], h, r, w, r, c), (0, 1, 3, 5, 2, 4), (lead[0], h, w, c * r * r), True)
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return _rearrange(x, (*lead, c, h, r, w, r), order, (*lead, c * r * r, h, w), False)


@function(method=False)
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""
    shape, last = _check_image("channel_shuffle", x, groups, "groups")
    n, channels, *rest = shape
    if channels % groups:
        raise ShapeError(f"channel_shuffle: input {shape}: its {channels} channels are no multiple of groups {groups}")
    apart = (groups, channels // groups)
    if last:
        k = len(rest) + 1
        x = ops.permute(x, dims=(0, *range(2, k + 1), 1))
        return _rearrange(x, (n, *rest, *apart), (*range(k), k + 1, k), (n, *rest, channels), True)
    return _rearrange(x, (n, *apart, *rest), (0, 2, 1, *range(3, 3 + len(rest))), shape, False)


@function(method=False)
def native_channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""
    return channel_shuffle(x, groups)


# -- grids

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def sample_grid(name: str, x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """x at the positions of a grid, refusing a grid that is no tensor of x's kind."""
    for label, t in (("input", x), ("grid", grid)):
        if t.dtype.kind != "float":
            raise DTypeError(f"{name}: {label} is {t.dtype.name}; {name} takes float types; cast it with .to(float32)")
    return ops.grid_sample(x, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))


def _mode_by_number(name: str, what: str, number: int, names: tuple[str, ...]) -> str:
    if not isinstance(number, int) or not 0 <= number < len(names):
        raise ArgumentError(f"{name}: {what} is {number!r}; give 0 to {len(names) - 1}: {', '.join(names)}")
    return names[number]


def _sample_by_numbers(name: str, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, dims: tuple[int, ...]) -> Tensor:
    if x.ndim not in dims:
        raise ShapeError(f"{name}: input {tuple(x.shape)} has {x.ndim} dimensions; it takes {' or '.join(map(str, dims))}")
    found = _mode_by_number(name, "interpolation_mode", mode, MODES), _mode_by_number(name, "padding_mode", padding, PADDINGS)
    return sample_grid(name, x, grid, *found, align_corners)


def _publish_sampler(name: str, doc: str, dims: tuple[int, ...]) -> None:
    def call(x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        return _sample_by_numbers(name, x, grid, interpolation_mode, padding_mode, align_corners, dims)

    function(method=False)(rename_function(call, name, doc))


_publish_sampler("grid_sampler", "grid_sample with its modes by number: bilinear, nearest, bicubic; zeros, border, reflection.", (4, 5))
_publish_sampler("grid_sampler_2d", "grid_sampler of images (batch, c, h, w).", (4,))
_publish_sampler("grid_sampler_3d", "grid_sampler of volumes (batch, c, d, h, w).", (5,))


def make_affine_grid(name: str, theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The grid (batch, *axes, n) of n by n + 1 matrices theta (batch, n, n + 1)."""
    if theta.dtype.kind != "float":
        raise DTypeError(f"{name}: theta is {theta.dtype.name}; {name} takes float types; cast it with .to(float32)")
    axes = len(size) - 2
    given = f"{name}: theta {tuple(theta.shape)}, size {tuple(size)}"
    if axes not in (2, 3):
        raise NotImplementedError(f"{given}: size must be (batch, c, h, w) or (batch, c, d, h, w)")
    if tuple(theta.shape) != (size[0], axes, axes + 1):
        raise ShapeError(f"{given}: theta must be {(size[0], axes, axes + 1)}")
    if min(size) < 1:
        raise ShapeError(f"{given}: every size must be at least 1")
    shape = (*size[2:], 1)
    columns = []
    for d in reversed(range(axes)):
        n = size[2 + d]
        if n == 1:
            at = ops.full(shape=(1,), value=0, dtype=theta._array.dtype, device=theta.device)
        else:
            end = 1.0 if align_corners else (n - 1) / n
            at = ops.linspace(start=-end, end=end, steps=n, dtype=theta._array.dtype, device=theta.device)
        at = ops.reshape(at, shape=tuple(n if k == d else 1 for k in range(axes + 1)))
        columns.append(ops.expand(at, shape=shape))
    columns.append(ops.full(shape=shape, value=1, dtype=theta._array.dtype, device=theta.device))
    base = ops.cat(*columns, dim=axes).reshape(-1, axes + 1)  # (positions, n + 1)
    return ops.matmul(base, theta.transpose(1, 2)).reshape(size[0], *size[2:], axes)


@function(method=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """affine_grid under the name of PyTorch's operator."""
    return make_affine_grid("affine_grid_generator", theta, size, align_corners)


# -- distances of pairs of vectors


def _normalize(x: Tensor, dim: int, eps: float) -> Tensor:
    """x / max(|x|, eps); the gradient is that of x / |x|, whichever it was, as PyTorch has it."""
    length = x.norm(2, dim, keepdim=True)
    if type(length._array) is np.ndarray and length._array.size and length._array.min() >= eps:
        return ops.div(x, length)
    short = (ops.clamp(length, eps, None) - length).detach()  # 0 but for vectors shorter than eps
    return ops.div(x, length + short)


@function(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""
    for name, x in (("x1", x1), ("x2", x2)):
        if x.dtype.kind != "float":
            mend = "view_as_real(x).flatten(-2) has a real cosine" if x.is_complex() else "cast it with .to(float32)"
            raise DTypeError(f"cosine_similarity: {name} is {x.dtype.name}; it takes float types; {mend}")
    if not eps >= 0:
        raise ArgumentError(f"cosine_similarity: eps is {eps}; it must be 0 or more")
    shape = broadcast("cosine_similarity", tuple(x1.shape), tuple(x2.shape), labels=("x1", "x2"))
    x1, x2 = (x if tuple(x.shape) == shape else ops.expand(x, shape=shape) for x in (x1, x2))
    return ops.mul(_normalize(x1, dim, eps), _normalize(x2, dim, eps)).sum(dim)


@function(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """|x1 - x2 + eps|_p over the last dimension, of inputs that broadcast."""
    difference = ops.add(ops.sub(x1, x2), eps)
    return difference.norm(p, -1, keepdim=keepdim)
