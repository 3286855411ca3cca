"""Regions of interest: their form as rows (batch, left, top, right, bottom), and bilinear samples of feature maps at points of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.shaping.joining import cat


def as_rows(who: str, boxes: Any) -> Tensor:
    """Regions (k, 5) of rows (k, 5), or of a list of boxes (n, 4), one entry for each image. Raises ShapeError for others."""
    if isinstance(boxes, list | tuple):
        for b in boxes:
            if b.ndim != 2 or b.shape[-1] != 4:
                raise ShapeError(f"{who}: boxes of an image are {tuple(b.shape)}; give (n, 4)")
        numbered = [cat([full((b.shape[0], 1), i, dtype=b.dtype, device=b.device), b], 1) for i, b in enumerate(boxes)]
        return cat(numbered, 0)
    if not isinstance(boxes, Tensor) or boxes.ndim != 2 or boxes.shape[-1] != 5:
        raise ShapeError(
            f"{who}: boxes {tuple(getattr(boxes, 'shape', ()))}; give (k, 5), an image's number and a box, or a list of (n, 4)"
        )
    return boxes


def as_pair(size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) of an output."""
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def host_rows(who: str, input: Tensor, rows: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(the images' numbers, the boxes) of regions, on the host: boxes take no gradient, as in torchvision."""
    if input.ndim != 4:
        raise ShapeError(f"{who}: input {tuple(input.shape)}; give feature maps (n, channels, height, width)")
    given = rows.detach().float().cpu().numpy() if rows.itemsize < 4 else rows.detach().cpu().numpy()
    images = given[:, 0].astype(np.int64)
    if len(images) and not (images.min() >= 0 and images.max() < input.shape[0]):
        raise ArgumentError(f"{who}: a box is of image {images.max()}, and there are {input.shape[0]}")
    return images, given[:, 1:]


def take(input: Tensor, images: np.ndarray, y: np.ndarray, x: np.ndarray) -> Tensor:
    """Elements (k, a, b, channels) of maps (n, channels, h, w) at rows y (k, a) and columns x (k, b) of image `images` (k,)."""
    at = [Tensor.wrap(np.ascontiguousarray(i)).to(input.device) for i in (images[:, None, None], y[:, :, None], x[:, None, :])]
    return input.permute(0, 2, 3, 1)[at[0], at[1], at[2]]  # type: ignore[no-any-return]


def _corners(at: np.ndarray, size: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """((lower places, their weights), (upper places, theirs)) of coordinates along one side; outside of -1 to size all weights are 0."""
    inside = (at >= -1.0) & (at <= size)
    at = np.where(inside, np.maximum(at, 0), 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    part = np.where(low >= size - 1, 0, at - low).astype(at.dtype)
    return (low, np.where(inside, 1 - part, 0)), (high, np.where(inside, part, 0))


def sample(input: Tensor, images: np.ndarray, y: np.ndarray, x: np.ndarray) -> Tensor:
    """Bilinear samples (k, a, b, channels) of maps (n, channels, h, w) at the grid of y (k, a) and x (k, b) of each region."""
    total: Tensor | None = None
    for rows, weight_y in _corners(y, int(input.shape[2])):
        for columns, weight_x in _corners(x, int(input.shape[3])):
            weight = Tensor.wrap((weight_y[:, :, None] * weight_x[:, None, :])[..., None]).to(input.device, input.dtype)
            part = take(input, images, rows, columns) * weight
            total = part if total is None else total + part
    assert total is not None
    return total
