"""RoIAlign (He et al. 2017): feature maps averaged over bins of each region, at points between the elements; and its position-sensitive form."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import nn
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import zeros
from tritensor.vision.ops.rois import as_pair, as_rows, host_rows, sample


def _points(start: np.ndarray, bin_size: np.ndarray, bins: int, per_bin: int) -> np.ndarray:
    """Coordinates (k, bins * per_bin) along one side: points spread evenly over each bin."""
    place = np.arange(bins, dtype=start.dtype)[:, None]
    inner = (np.arange(per_bin, dtype=start.dtype) + start.dtype.type(0.5))[None]
    at = start[:, None, None] + place * bin_size[:, None, None] + inner * (bin_size[:, None, None] / per_bin)
    found: np.ndarray = at.reshape(len(start), -1)
    return found


def _align(who: str, input: Tensor, rows: Tensor, size: tuple[int, int], scale: float, ratio: int, shift: float, least: float) -> Tensor:
    """(k, channels, *size); `least` is the smallest side that a region is taken for."""
    images, boxes = host_rows(who, input, rows)
    kind = boxes.dtype.type
    boxes = boxes * kind(scale) - kind(shift)
    width, height = np.maximum(boxes[:, 2] - boxes[:, 0], least), np.maximum(boxes[:, 3] - boxes[:, 1], least)
    bin_h, bin_w = height / kind(size[0]), width / kind(size[1])
    grid = np.empty((len(boxes), 2), np.int64)
    grid[:, 0], grid[:, 1] = (ratio, ratio) if ratio > 0 else (np.ceil(bin_h), np.ceil(bin_w))
    out = zeros((len(boxes), input.shape[1], *size), dtype=input.dtype, device=input.device)
    for per_h, per_w in sorted({(int(a), int(b)) for a, b in grid}):
        chosen = np.flatnonzero((grid[:, 0] == per_h) & (grid[:, 1] == per_w))
        if per_h < 1 or per_w < 1:  # a region without area has no points: 0
            continue
        y = _points(boxes[chosen, 1], bin_h[chosen], size[0], per_h)
        x = _points(boxes[chosen, 0], bin_w[chosen], size[1], per_w)
        found = sample(input, images[chosen], y, x)  # (k, size[0] * per_h, size[1] * per_w, channels)
        binned = found.reshape(len(chosen), size[0], per_h, size[1], per_w, -1).mean((2, 4)).permute(0, 3, 1, 2)
        out = binned if len(chosen) == len(boxes) else out.index_copy(0, Tensor.wrap(chosen).to(input.device), binned)
    return out


def roi_align(
    input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1, aligned: bool = False
) -> Tensor:
    """Means over the bins of each region, (k, channels, *output_size), of feature maps (n, channels, h, w).

    Args:
        boxes: rows (k, 5), an image's number and left, top, right, bottom; or a list of (n, 4), an entry for each image. They take no gradient.
        output_size: bins, (height, width) or a number for both.
        spatial_scale: the maps' size over that of the images that the boxes are of.
        sampling_ratio: points along each side of a bin; 0 or less takes as many as the bin has elements, rounded up.
        aligned: shift by half an element, so that pixels' middles are where they belong.

    Raises ShapeError for other shapes, ValueError for the number of an image that is not there.
    """
    rows, size = as_rows("roi_align", boxes), as_pair(output_size)
    shift, least = (0.5, -np.inf) if aligned else (0.0, 1.0)
    return _align("roi_align", input, rows, size, spatial_scale, sampling_ratio, shift, least)


def pick_positions(who: str, full: Tensor, size: tuple[int, int]) -> Tensor:
    """(k, channels / bins, *size): of each bin the channels that are its own, out of (k, channels, *size)."""
    bins = size[0] * size[1]
    if full.shape[1] % bins:
        raise ShapeError(f"{who}: {full.shape[1]} channels; give a multiple of {size[0]} x {size[1]}, a channel for each bin")
    apart = full.reshape(full.shape[0], full.shape[1] // bins, bins, bins)
    return apart.diagonal(dim1=2, dim2=3).reshape(full.shape[0], -1, *size)  # type: ignore[no-any-return]


def ps_roi_align(input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1) -> Tensor:
    """roi_align in which each bin has channels of its own (Li et al. 2017): (k, channels / bins, *output_size)."""
    rows, size = as_rows("ps_roi_align", boxes), as_pair(output_size)
    return pick_positions("ps_roi_align", _align("ps_roi_align", input, rows, size, spatial_scale, sampling_ratio, 0.5, -np.inf), size)


class RoIAlign(nn.Module):
    """`roi_align` as a layer."""

    def __init__(self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned = output_size, spatial_scale, sampling_ratio, aligned

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def __repr__(self) -> str:
        given = f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, sampling_ratio={self.sampling_ratio}"
        return f"{type(self).__name__}({given}, aligned={self.aligned})"


class PSRoIAlign(nn.Module):
    """`ps_roi_align` as a layer."""

    def __init__(self, output_size: int, spatial_scale: float, sampling_ratio: int) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio = output_size, spatial_scale, sampling_ratio

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)

    def __repr__(self) -> str:
        given = f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, sampling_ratio={self.sampling_ratio}"
        return f"{type(self).__name__}({given})"
