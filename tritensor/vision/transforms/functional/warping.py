"""Functions that warp: rotate, affine, perspective, elastic. PIL images go to Pillow; tensors are sampled at the points that pixels come from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tritensor.nn.functional as F
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor, ones
from tritensor.tensor.functions.creation.sequences import linspace
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms.functional.conversion import pil_to_tensor, to_pil_image
from tritensor.vision.transforms.functional.geometry import as_pil_fill
from tritensor.vision.transforms.functional.images import as_batch, get_dimensions, is_pil, restore_shape
from tritensor.vision.transforms.interpolation import PILLOW, InterpolationMode, as_mode

Numbers = Sequence[float]


def rotate(
    img: Any, angle: float, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False, center: Numbers | None = None, fill: Any = None
) -> Any:  # fmt: skip
    """An image turned by `angle` degrees, against the clock, around `center` (x, y; default: its middle).

    `expand` makes room for the whole turned image (meant for turns around the middle). `fill` is a number or one for each channel.
    Raises ValueError for another interpolation than nearest and bilinear of a tensor, or a fill of other channels.
    """
    mode = as_mode("rotate", interpolation)
    if is_pil(img, "rotate"):
        return img.rotate(angle, PILLOW[mode], expand, center, fillcolor=as_pil_fill(fill, img, "rotate"))
    _, height, width = get_dimensions(img)
    matrix = affine_matrix(_offset_from_middle(center, width, height), -angle, (0.0, 0.0), 1.0, (0.0, 0.0))
    # rotations of a tensor are about its middle: the grid alone grows
    size = expanded_size(matrix, width, height) if expand else (width, height)
    return _sample_image(img, _affine_grid(img, matrix, size), mode, fill, "rotate")


def affine(
    img: Any, angle: float, translate: Sequence[float], scale: float, shear: Any, interpolation: Any = InterpolationMode.NEAREST, fill: Any = None,
    center: Numbers | None = None,
) -> Any:  # fmt: skip
    """An image turned by `angle` degrees with the clock, sheared by `shear` degrees (x, or (x, y)), scaled, then moved by `translate` pixels (x, y).

    Around `center` (x, y; default: its middle). Raises ValueError for a scale that is not positive or sequences that are no pairs, and as rotate does.
    """
    mode = as_mode("affine", interpolation)
    of_pillow = is_pil(img, "affine")
    translate, shear = check_affine(translate, scale, shear)
    _, height, width = get_dimensions(img)
    if of_pillow:
        middle = (width * 0.5, height * 0.5) if center is None else center
        matrix = affine_matrix(middle, angle, translate, scale, shear)
        return img.transform(img.size, 0, matrix, PILLOW[mode], fillcolor=as_pil_fill(fill, img, "affine"))  # Pillow's AFFINE
    matrix = affine_matrix(_offset_from_middle(center, width, height), angle, translate, scale, shear)
    return _sample_image(img, _affine_grid(img, matrix, (width, height)), mode, fill, "affine")


def check_affine(translate: Any, scale: float, shear: Any) -> tuple[tuple[float, ...], tuple[float, float]]:
    """(translate, shear) as pairs. Raises TypeError for a translate that is no sequence, ValueError for a scale that is not positive or no pairs."""
    if not isinstance(translate, tuple | list):
        raise TypeError(f"affine: translate {translate!r}; give (x, y) in pixels")
    if len(translate) != 2:
        raise ArgumentError(f"affine: translate {tuple(translate)}; give (x, y) in pixels")
    if scale <= 0:
        raise ArgumentError(f"affine: scale {scale}; give a number above 0")
    shear = (shear, 0.0) if isinstance(shear, int | float) else tuple(shear)  # one number is a shear along x
    if len(shear) not in (1, 2):
        raise ArgumentError(f"affine: shear {shear}; give degrees along x, or (x, y)")
    return tuple(translate), (float(shear[0]), float(shear[-1]))


def perspective(
    img: Any, startpoints: Sequence[Numbers], endpoints: Sequence[Numbers], interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:  # fmt: skip
    """An image seen from aside: its four `startpoints` (x, y) go to `endpoints`; clockwise from the top left.

    Raises ValueError for other numbers of points, and as rotate does.
    """
    c = perspective_coefficients(startpoints, endpoints)  # from ends to starts: each pixel asks for its source
    return warp_perspective(img, c, as_mode("perspective", interpolation), fill)


def warp_perspective(img: Any, c: Sequence[float], mode: InterpolationMode, fill: Any) -> Any:
    """An image whose pixels come from where eight coefficients say: see perspective_coefficients. Raises as rotate does."""
    if len(c) != 8:
        raise ArgumentError(f"perspective: {len(c)} coefficients; give eight")
    if is_pil(img, "perspective"):
        return img.transform(img.size, 2, c, PILLOW[mode], fillcolor=as_pil_fill(fill, img, "perspective"))  # Pillow's PERSPECTIVE
    _, height, width = get_dimensions(img)
    positions = _pixel_positions(img, width, height, 0.5, 0.5)  # (h w, 3)
    half = as_tensor([0.5 * width, 0.5 * height], dtype=positions.dtype, device=img.device)
    above = as_tensor([c[0:3], c[3:6]], dtype=positions.dtype, device=img.device)
    below = as_tensor([[*c[6:8], 1.0]] * 2, dtype=positions.dtype, device=img.device)
    grid = positions @ (above.t() / half) / (positions @ below.t()) - 1.0
    return _sample_image(img, grid.reshape(1, height, width, 2), mode, fill, "perspective")


def elastic_transform(img: Any, displacement: Tensor, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None) -> Any:
    """An image whose pixel at (y, x) comes from there plus displacement[0, y, x] (x, y), in halves of its width and height.

    Raises TypeError for a displacement that is no tensor, ShapeError for another shape than (1, height, width, 2).
    """
    mode = as_mode("elastic_transform", interpolation)
    if not isinstance(displacement, Tensor):
        raise TypeError(f"elastic_transform: displacement is a {type(displacement).__name__}; give a tensor")
    values = pil_to_tensor(img) if is_pil(img, "elastic_transform") else img
    height, width = values.shape[-2:]
    if tuple(displacement.shape) != (1, height, width, 2):
        raise ShapeError(
            f"elastic_transform: displacement {tuple(displacement.shape)} for an image of {height} x {width}; give {(1, height, width, 2)}"
        )
    displacement = displacement.to(values.device)
    across, down = (linspace((1 - n) / n, (n - 1) / n, n, dtype=displacement.dtype, device=values.device) for n in (width, height))
    still = stack([across.expand(height, width), down[:, None].expand(height, width)], -1)[None]
    out = _sample_image(values, still + displacement, mode, fill, "elastic_transform")
    return to_pil_image(out, mode=img.mode) if is_pil_image(img) else out


def _offset_from_middle(center: Numbers | None, width: int, height: int) -> tuple[float, float]:
    return (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)


def affine_matrix(
    center: Numbers, angle: float, translate: Numbers, scale: float, shear: Numbers, forward: bool = False
) -> list[float]:  # fmt: skip
    """The map from a pixel to the point that it comes from, or with `forward` that it goes to, as rows (a, b, c), (d, e, f).

    The latter is translate . center . rotate . shear . scale . center^-1.
    With R the rotation, S_x = [[1, -tan sx], [0, 1]] and S_y = [[1, 0], [-tan sy, 1]], the linear part is scale R S_y S_x.
    """
    turn, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    if forward:
        a, b, c, d = a * scale, b * scale, c * scale, d * scale
        return [a, b, cx + tx - a * cx - b * cy, c, d, cy + ty - c * cx - d * cy]
    p, q, r, s = d / scale, -b / scale, -c / scale, a / scale  # its determinant is scale^2
    x, y = 0.0 / scale + (p * (-cx - tx) + q * (-cy - ty)), 0.0 / scale + (r * (-cx - tx) + s * (-cy - ty))
    return [p, q, x + cx, r, s, y + cy]


def expanded_size(matrix: list[float], width: int, height: int) -> tuple[int, int]:
    """(width, height) of the box around the corners, each moved by the matrix; to 1e-4 of a pixel, lest a rounding make it one wider."""
    w, h = width * 0.5, height * 0.5
    corners = np.array([[-w, -h, 1], [-w, h, 1], [w, h, 1], [w, -h, 1]], np.float32)
    moved = corners @ np.array(matrix, np.float32).reshape(2, 3).T
    half, step = np.array([w, h], np.float32), np.float32(1e-4)
    high = np.ceil(np.trunc((moved.max(0) + half) / step) * step)
    low = np.floor(np.trunc((moved.min(0) + half) / step) * step)
    return int(high[0] - low[0]), int(high[1] - low[1])


def _grid_dtype(img: Tensor) -> Any:
    return dtypes.float64 if img.dtype.name == "float64" else dtypes.float32  # positions in 16 bits would be off by pixels


def _pixel_positions(img: Tensor, width: int, height: int, left: float, top: float) -> Tensor:
    """(height width, 3): x, y and 1 of each pixel, the first at (left, top)."""
    kind = _grid_dtype(img)
    x = linspace(left, left + width - 1, width, dtype=kind, device=img.device).expand(height, width)
    y = linspace(top, top + height - 1, height, dtype=kind, device=img.device)[:, None].expand(height, width)
    return stack([x, y, ones(height, width, dtype=kind, device=img.device)], -1).reshape(height * width, 3)


def _affine_grid(img: Tensor, matrix: list[float], size: tuple[int, int]) -> Tensor:
    """(1, h, w, 2): the point that each pixel of an image of `size` (w, h) comes from, in halves of img's width and height from its middle."""
    width, height = size
    half = as_tensor([0.5 * img.shape[-1], 0.5 * img.shape[-2]], dtype=_grid_dtype(img), device=img.device)
    theta = as_tensor(matrix, dtype=_grid_dtype(img), device=img.device).reshape(2, 3)
    positions = _pixel_positions(img, width, height, 0.5 - width * 0.5, 0.5 - height * 0.5)
    return (positions @ (theta.t() / half)).reshape(1, height, width, 2)


def perspective_coefficients(startpoints: Sequence[Numbers], endpoints: Sequence[Numbers]) -> list[float]:
    """The eight numbers c of x' = (c0 x + c1 y + c2) / (c6 x + c7 y + 1), y' = (c3 x + c4 y + c5) / (...), which lead from the ends to the starts.

    Raises ValueError for other numbers of points than four.
    """
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ArgumentError(f"perspective: {len(startpoints)} startpoints and {len(endpoints)} endpoints; give the four corners of each")
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    found = np.linalg.lstsq(np.array(rows, np.float64), np.array(startpoints, np.float64).reshape(8), rcond=None)[0]
    return [float(x) for x in found.astype(np.float32)]  # torchvision's precision, so that the same pixels are met


def _sample_image(img: Tensor, grid: Tensor, mode: InterpolationMode, fill: Any, name: str) -> Tensor:
    """An image's values at the points of a grid (1, h, w, 2); outside of it `fill`."""
    if mode.value not in ("nearest", "bilinear"):
        raise ArgumentError(f"{name}: interpolation {mode.value} of a tensor; give nearest or bilinear")
    colour = None if fill is None else [float(f) for f in (fill if isinstance(fill, tuple | list) else (fill,))]
    values = as_batch(img).to(grid.dtype)
    count, channels, height, width = values.shape
    if colour is not None and len(colour) not in (1, channels):
        raise ArgumentError(f"{name}: fill {tuple(colour)} has {len(colour)} numbers and the image {channels} channels")
    planes = values.reshape(1, count * channels, height, width)  # as channels of one image: the points are worked out once for all
    if colour is not None:  # a channel of ones tells how much of a pixel comes from the image
        planes = cat([planes, ones(1, 1, height, width, dtype=planes.dtype, device=planes.device)], 1)
    out = F.grid_sample(planes, grid, mode=mode.value, padding_mode="zeros", align_corners=False)
    inside, out = out[:, -1:], out[:, : count * channels].reshape(count, channels, *out.shape[2:])
    if colour is not None:
        around = as_tensor(colour, dtype=out.dtype, device=out.device).reshape(1, -1, 1, 1)
        out = where(inside < 0.5, around, out) if mode is InterpolationMode.NEAREST else out * inside + (1.0 - inside) * around
    return restore_shape(out, img)
