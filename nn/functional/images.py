"""Images: at another size, sampled at the positions of a grid, their patches as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.ground.dtypes import uint8
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.functional.pooling.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tritensor.nn.functional.window_arguments import Sizes, add_batch, to_axes
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.images import MODES, PADDINGS, make_affine_grid, sample_grid
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked

# mode: (what each axis does, input dimensions that it takes)
_MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (3, 4, 5)), "nearest-exact": ("nearest-exact", (3, 4, 5)), "area": ("area", (3, 4, 5)),
    "linear": ("linear", (3,)), "bilinear": ("linear", (4,)), "bicubic": ("cubic", (4,)), "trilinear": ("linear", (5,)),
}  # fmt: skip

_AVERAGES: dict[int, Any] = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def _to_axes(name: str, what: str, value: Any, axes: int, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    # numpy's integers and tensors of one are numbers, too
    found = tuple(map(one_integer, value)) if isinstance(value, Sequence) and not isinstance(value, str) else (one_integer(value),) * axes
    for v in found:
        if not isinstance(v, kinds) or isinstance(v, bool):  # True is an int
            raise TypeError(
                f"{name}: {what} is {value!r}; give {'an integer' if kinds == (int,) else 'a number'}, or one for each of {axes} axes"
            )
    if len(found) != axes:
        raise ArgumentError(
            f"{name}: {what} {value!r} has {len(found)} numbers, the input {axes} axes behind (batch, channels); give one for each"
        )
    return found


def _output_size(
    name: str, input: Tensor, size: Any, scale_factor: Any, recompute: bool
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The size of the result, and the scales that positions are computed with, None where the two sizes say them."""
    axes = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"{name}: size is {size!r}, scale_factor {scale_factor!r}; give one of them")
    if size is not None:
        if recompute:
            raise ArgumentError(f"{name}: recompute_scale_factor means nothing with size; leave it out")
        return _to_axes(name, "size", size, axes, (int,)), (None,) * axes
    factors = _to_axes(name, "scale_factor", scale_factor, axes, (int, float))
    # in float64, as PyTorch: a rounded product would be a cell short
    out = tuple(math.floor(float(n * f)) for n, f in zip(input.shape[2:], factors, strict=True))
    # a factor of 0 or less says nothing of positions
    return out, (None,) * axes if recompute else tuple(float(f) if f > 0 else None for f in factors)


def _check_flag(name: str, what: str, value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name}: {what} is {value!r}; give True, False or None")
    return bool(value)


def _resample(
    name: str, input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None, recompute: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    aligned, recomputes = _check_flag(name, "align_corners", align_corners), _check_flag(name, "recompute_scale_factor", recompute)
    if mode not in _MODES:
        raise NotImplementedError(f"{name}: mode {mode!r} is not known; give one of {', '.join(_MODES)}")
    kind, dims = _MODES[mode]
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ArgumentError(f"{name}: align_corners is for the linear and cubic modes, not for {mode!r}; leave it out")
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ArgumentError(f"{name}: antialias is for bilinear and bicubic, not for {mode!r} of {input.ndim} dimensions")
    if input.ndim not in (3, 4, 5):
        raise NotImplementedError(f"{name}: input {tuple(input.shape)}: it has (batch, channels) and one to three axes")
    if input.ndim not in dims:
        raise NotImplementedError(
            f"{name}: input {tuple(input.shape)} has {input.ndim} dimensions, mode {mode!r} is for {dims[0]}; "
            f"the linear modes are 'linear', 'bilinear' and 'trilinear' for 3, 4 and 5"
        )
    if input.dtype.kind != "float" and (input.dtype is not uint8 or mode in ("linear", "trilinear", "area")):
        raise NotImplementedError(f"{name}: input is {input.dtype.name}; mode {mode!r} takes float types; cast it with .to(float32)")
    out, factors = _output_size(name, input, size, scale_factor, recomputes)
    if min(out) < 1 or 0 in input.shape[2 if kind == "area" else 1 :]:
        raise ShapeError(f"{name}: input {tuple(input.shape)} to size {out}: every size must be at least 1")
    # means over windows are adaptive pooling, which has kernels of its own
    if kind == "area":
        return _AVERAGES[len(out)](input, out)  # type: ignore[no-any-return]
    return ops.resample(input, size=out, mode=kind + "-aa" * antialias, align_corners=aligned, factors=factors)


@checked
def interpolate(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """The input (batch, channels, one to three axes) at another size, given as `size` or as a factor.

    Args:
        mode: "nearest", "nearest-exact", "area" (means, see adaptive_avg_pool2d); "linear", "bilinear", "trilinear" for one, two, three axes;
            "bicubic" (Keys 1981, a = -0.75) for two.
        align_corners: for the linear and cubic modes: first and last elements stay at the ends, instead of elements being cells with a width.
        recompute_scale_factor: compute positions from the two sizes, and not from scale_factor as given.
        antialias: bilinear and bicubic: widen the filter where the image shrinks (bicubic with a = -0.5 then).

    Raises:
        ValueError: arguments that do not go together. NotImplementedError: a mode for another number of axes.
    """
    return _resample("interpolate", input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


@checked
def upsample(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """interpolate under its older name."""
    return _resample("upsample", input, size, scale_factor, mode, align_corners)


@checked
def upsample_nearest(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """interpolate(mode="nearest") under its older name."""
    return _resample("upsample_nearest", input, size, scale_factor, "nearest", None)


@checked
def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """interpolate(mode="bilinear", align_corners=True) under its older name."""
    return _resample("upsample_bilinear", input, size, scale_factor, "bilinear", True)


@checked
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """input (batch, c, h, w) at grid (batch, h', w', 2), or (batch, c, d, h, w) at (batch, d', h', w', 3): (batch, c, h', w') or with d'.

    A position's numbers are (x, y) or (x, y, z), -1 and 1 the ends of the width, height and depth: the middles of the corner elements with
    align_corners, else the outer edges of the image.

    Args:
        mode: "bilinear" (of volumes trilinear), "nearest", or for images "bicubic".
        padding_mode: what lies outside: "zeros", the "border" element, or a "reflection".

    Raises:
        ValueError: an unknown mode. ShapeError: sizes that do not go together.
    """
    if mode not in MODES:
        raise ArgumentError(f"grid_sample: mode {mode!r} is not known; give one of {', '.join(MODES)}")
    if padding_mode not in PADDINGS:
        raise ArgumentError(f"grid_sample: padding_mode {padding_mode!r} is not known; give one of {', '.join(PADDINGS)}")
    aligned = _check_flag("grid_sample", "align_corners", align_corners)
    return sample_grid("grid_sample", input, grid, mode, padding_mode, aligned)


@checked
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where an affine map takes the positions of an image of `size`, for grid_sample: theta (batch, 2, 3) or (batch, 3, 4), size (batch, c, h, w)
    or (batch, c, d, h, w) -> (batch, h, w, 2) or (batch, d, h, w, 3)."""
    aligned = _check_flag("affine_grid", "align_corners", align_corners)
    if not all(isinstance(n, int) for n in size):
        raise TypeError(f"affine_grid: size is {size!r}; give integers")
    return make_affine_grid("affine_grid", theta, tuple(size), aligned)


def _window_pairs(name: str, **settings: Sizes) -> dict[str, tuple[int, ...]]:
    """(height, width) of each setting."""
    return {what: to_axes(name, what, value, 2) for what, value in settings.items()}


@checked
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The windows of images as columns: (batch, c, h, w) -> (batch, c * kh * kw, windows), zeros where a window leaves the image (im2col)."""
    x, single = add_batch("unfold", input)
    y = ops.im2col(x, **_window_pairs("unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))
    return forget_base(y.squeeze(0)) if single else y


@checked
def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Columns added up to images, each cell the sum over the windows that hold it: (batch, c * kh * kw, windows) -> (batch, c, *output_size)."""
    if input.ndim not in (2, 3):
        raise ShapeError(
            f"fold: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, columns, windows) or (columns, windows)"
        )
    single = input.ndim == 2
    sizes = _window_pairs("fold", output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    y = ops.col2im(input.unsqueeze(0) if single else input, **sizes)
    return forget_base(y.squeeze(0)) if single else y
