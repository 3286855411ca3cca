"""Transforms to another size, given or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.samples import query_size


class Resize(Transform):
    """Another size: (height, width), the length of the shorter edge, or None, which fits the longer edge to max_size: `functional.resize`.

    Raises ValueError for sizes that are none.

    >>> sample = {"image": tt.rand(3, 32, 48), "boxes": tt.vision.tv_tensors.BoundingBoxes([[4, 8, 12, 16]], format="XYXY", canvas_size=(32, 48))}
    >>> resized = tt.vision.transforms.v2.Resize(16)(sample)
    >>> resized["image"].shape, resized["boxes"].tolist(), resized["boxes"].canvas_size
    (tritensor.Size([3, 16, 24]), [[2, 4, 6, 8]], (16, 24))
    """

    _functional = staticmethod(F.resize)
    _settings = ("size", "interpolation", "max_size", "antialias")

    def __init__(self, size: Any, interpolation: Any = "bilinear", max_size: int | None = None, antialias: bool | None = True) -> None:
        super().__init__()
        if size is None and not isinstance(max_size, int):
            raise ArgumentError(f"Resize: max_size must be an integer when size is None, but got {max_size} instead")
        if not (size is None or isinstance(size, int) or (isinstance(size, Sequence) and len(size) in (1, 2))):
            raise ArgumentError(f"Resize: size can be an integer, a sequence of one or two integers, or None, but got {size} instead")
        self.size = [size] if isinstance(size, int) else None if size is None else list(size)
        self.interpolation, self.max_size, self.antialias = interpolation, max_size, antialias


class _RandomSize(Transform):
    _functional = staticmethod(F.resize)
    _settings = ("interpolation", "antialias")


class ScaleJitter(_RandomSize):
    """A size that fits target_size, times a factor of scale_range (Ghiasi et al. 2021)."""

    def __init__(
        self, target_size: tuple[int, int], scale_range: tuple[float, float] = (0.1, 2.0), interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.target_size, self.scale_range, self.interpolation, self.antialias = target_size, scale_range, interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        # torchvision's pairing: the target's second number with the height
        r = min(self.target_size[1] / height, self.target_size[0] / width) * draws.uniform(*self.scale_range)
        return {"size": (int(height * r), int(width * r))}


class RandomShortestSize(_RandomSize):
    """The shorter edge of one of the lengths min_size, the longer one at most max_size."""

    def __init__(self, min_size: Any, max_size: int | None = None, interpolation: Any = "bilinear", antialias: bool | None = True) -> None:
        super().__init__()
        self.min_size, self.max_size = [min_size] if isinstance(min_size, int) else list(min_size), max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        r = self.min_size[draws.integer(0, len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            r = min(r, self.max_size / max(height, width))
        return {"size": (int(height * r), int(width * r))}


class RandomResize(_RandomSize):
    """The shorter edge of a length from min_size on, below max_size."""

    def __init__(self, min_size: int, max_size: int, interpolation: Any = "bilinear", antialias: bool | None = True) -> None:
        super().__init__()
        self.min_size, self.max_size, self.interpolation, self.antialias = min_size, max_size, interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [draws.integer(self.min_size, self.max_size)]}
