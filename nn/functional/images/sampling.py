"""Sampling images at the positions of a grid: grid_sample, and affine_grid, which makes grids."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.images import MODES, PADDINGS, make_affine_grid, sample_grid
from tritensor.tensor.public_api.publish import checked


def _check_flag(name: str, align_corners: bool | None) -> None:
    if align_corners is not None and not isinstance(align_corners, bool):
        raise TypeError(f"{name}: align_corners is {align_corners!r}; give True, False or None")


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
    _check_flag("grid_sample", align_corners)
    return sample_grid("grid_sample", input, grid, mode, padding_mode, bool(align_corners))


@checked
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where an affine map takes the positions of an image of `size`, for grid_sample: theta (batch, 2, 3) or (batch, 3, 4), size (batch, c, h, w)
    or (batch, c, d, h, w) -> (batch, h, w, 2) or (batch, d, h, w, 3)."""
    _check_flag("affine_grid", align_corners)
    if not all(isinstance(n, int) for n in size):
        raise TypeError(f"affine_grid: size is {size!r}; give integers")
    return make_affine_grid("affine_grid", theta, tuple(size), bool(align_corners))
