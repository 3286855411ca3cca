"""RoIPool (Girshick 2015): the largest of the elements in each bin of a region; and the position-sensitive mean of Dai et al. (2016)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import nn
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.vision.ops.roi_align import pick_positions
from tritensor.vision.ops.rois import as_pair, as_rows, host_rows, take


def _round(x: np.ndarray) -> np.ndarray:
    """Halves away from 0, as C's round()."""
    rounded: np.ndarray = (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(np.int64)
    return rounded


def _spans(start: np.ndarray, length: np.ndarray, bins: int, size: int, limit: int, kind: Any) -> tuple[np.ndarray, np.ndarray]:
    """(places (k, bins, m), whether each is in its bin) along one side of regions that begin at `start` and have `length` elements."""
    step = length.astype(kind) / kind(bins)
    place = np.arange(bins, dtype=kind)
    first = np.clip(np.floor(place * step[:, None]).astype(np.int64) + start[:, None], 0, limit)
    last = np.clip(np.ceil((place + 1) * step[:, None]).astype(np.int64) + start[:, None], 0, limit)
    most = max(1, int((last - first).max(initial=0)))
    at = first[..., None] + np.arange(most)
    return np.minimum(at, size - 1), at < last[..., None]


def _bins(who: str, input: Tensor, rows: Tensor, size: tuple[int, int], scale: float, short: int) -> tuple[Tensor, Tensor]:
    """(elements (k, *size, m, channels) of each bin, whether each is in it (k, *size, m, 1)).

    `short` is 1 where regions and map leave out their last row and column, as torchvision's mean does.
    """
    images, boxes = host_rows(who, input, rows)
    kind = boxes.dtype.type
    left, top, right, bottom = (_round(boxes[:, i] * kind(scale)) for i in range(4))
    height, width = int(input.shape[2]), int(input.shape[3])
    y, in_y = _spans(top, np.maximum(bottom - top + 1 - short, 1), size[0], height, height - short, kind)
    x, in_x = _spans(left, np.maximum(right - left + 1 - short, 1), size[1], width, width - short, kind)
    k, m, n = len(boxes), y.shape[2], x.shape[2]
    found = take(input, images, y.reshape(k, -1), x.reshape(k, -1)).reshape(k, size[0], m, size[1], n, -1)
    inside = in_y[:, :, :, None, None] & in_x[:, None, None]  # (k, size[0], m, size[1], n)
    flat = np.ascontiguousarray(inside.transpose(0, 1, 3, 2, 4)).reshape(k, *size, m * n, 1)
    return found.permute(0, 1, 3, 2, 4, 5).reshape(k, *size, m * n, -1), Tensor.wrap(flat).to(input.device)


def roi_pool(input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0) -> Tensor:
    """The largest element of each bin of each region, (k, channels, *output_size), 0 of a bin without one; of feature maps (n, channels, h, w).

    `boxes`, `output_size` and `spatial_scale` are those of roi_align; regions are rounded to whole elements.
    """
    found, inside = _bins("roi_pool", input, as_rows("roi_pool", boxes), as_pair(output_size), spatial_scale, 0)
    largest = found.masked_fill(~inside, -float("inf")).max(3)[0]  # by place: of equal ones the first has the gradient
    return ops.where(inside.any(3), largest, largest.new_zeros(())).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


def ps_roi_pool(input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0) -> Tensor:
    """The mean of each bin of each region over the channels that are the bin's own, (k, channels / bins, *output_size).

    The gradient is that of these means; torchvision's counts the map's last row and column, which its means leave out.
    """
    size = as_pair(output_size)
    found, inside = _bins("ps_roi_pool", input, as_rows("ps_roi_pool", boxes), size, spatial_scale, 1)
    total = (found * inside).sum(3) / inside.sum(3).clamp(min=1)
    return pick_positions("ps_roi_pool", total.permute(0, 3, 1, 2), size)


class RoIPool(nn.Module):
    """`roi_pool` as a layer."""

    def __init__(self, output_size: Any, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale})"


class PSRoIPool(RoIPool):
    """`ps_roi_pool` as a layer."""

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)
