"""RoIAlign of several feature maps, each region from the map of its size (Lin et al. 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import zeros
from tritensor.vision.ops.boxes import box_area
from tritensor.vision.ops.roi_align import roi_align
from tritensor.vision.ops.rois import as_pair, as_rows


class MultiScaleRoIAlign(nn.Module):
    """(a dict of maps, a list of boxes (n, 4) for each image, the images' sizes) to (all boxes, channels, *output_size).

    Args:
        featmap_names: which maps of the dict to take, from fine to coarse; their scales are read off the sizes.
        output_size, sampling_ratio: those of roi_align.
        canonical_scale, canonical_level: a box of this side is taken from the map of this level, log2 of how much smaller the map is.

    Raises ValueError where no map is of one of the names.
    """

    def __init__(
        self, featmap_names: list[str], output_size: Any, sampling_ratio: int, *, canonical_scale: int = 224, canonical_level: int = 4
    ) -> None:
        super().__init__()
        self.featmap_names, self.output_size, self.sampling_ratio = featmap_names, as_pair(output_size), sampling_ratio
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def forward(self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]) -> Tensor:
        maps = [v for k, v in x.items() if k in self.featmap_names]
        if not maps or not image_shapes:
            raise ArgumentError(f"MultiScaleRoIAlign: maps {list(x)} and {len(image_shapes)} images; give maps of {self.featmap_names}")
        most = [max(s[i] for s in image_shapes) for i in (0, 1)]
        scales = [2.0 ** round(math.log2(m.shape[-2] / most[0])) for m in maps]
        rows = as_rows("MultiScaleRoIAlign", boxes)
        if len(maps) == 1:
            return roi_align(maps[0], rows, self.output_size, scales[0], self.sampling_ratio)
        level = self._levels(rows, scales)
        out = zeros((rows.shape[0], maps[0].shape[1], *self.output_size), dtype=maps[0].dtype, device=maps[0].device)
        for k, (each, scale) in enumerate(zip(maps, scales, strict=True)):
            chosen = Tensor.wrap(np.flatnonzero(level == k)).to(rows.device)
            found = roi_align(each, rows[chosen], self.output_size, scale, self.sampling_ratio)
            out = out.index_copy(0, chosen, found.to(out.dtype))
        return out

    def _levels(self, rows: Tensor, scales: list[float]) -> np.ndarray:
        """The number of each region's map."""
        side = box_area(rows[:, 1:]).sqrt().detach().cpu().numpy()
        least, most = -math.log2(scales[0]), -math.log2(scales[-1])
        with np.errstate(divide="ignore"):  # a box without area is of the finest map
            found = np.floor(self.canonical_level + np.log2(side / self.canonical_scale) + 1e-6)
        levels: np.ndarray = (np.clip(found, least, most) - least).astype(np.int64)
        return levels

    def __repr__(self) -> str:
        given = f"featmap_names={self.featmap_names}, output_size={self.output_size}, sampling_ratio={self.sampling_ratio}"
        return f"{type(self).__name__}({given})"
