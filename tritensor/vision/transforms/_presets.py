"""Presets: what networks with published weights want done with an image."""

from __future__ import annotations

from typing import Any

from tritensor import nn
from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.interpolation import InterpolationMode


class SemanticSegmentation(nn.Module):
    """An image, of PIL or a tensor of bytes (..., 3, h, w), resized and normalised, float32; resize_size None keeps its size."""

    def __init__(
        self, *, resize_size: int | None, mean: tuple[float, ...] = (0.485, 0.456, 0.406), std: tuple[float, ...] = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.resize_size = None if resize_size is None else [resize_size]
        self.mean, self.std, self.interpolation, self.antialias = list(mean), list(std), interpolation, antialias

    def forward(self, img: Any) -> Tensor:
        if self.resize_size is not None:
            img = F.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)
        img = img if isinstance(img, Tensor) else F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, dtypes.float32), mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        return _repr_of(self, ("resize_size", "mean", "std", "interpolation"))


def _repr_of(preset: Any, names: tuple[str, ...]) -> str:
    return "\n".join([f"{type(preset).__name__}(", *(f"    {name}={getattr(preset, name)}" for name in names), ")"])


class ImageClassification(nn.Module):
    """An image, of PIL or a tensor of bytes (..., 3, h, w), resized, cut to its middle, and normalised: (..., 3, crop_size, crop_size), float32."""

    def __init__(
        self, *, crop_size: int, resize_size: int = 256, mean: tuple[float, ...] = (0.485, 0.456, 0.406),
        std: tuple[float, ...] = (0.229, 0.224, 0.225), interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std, self.interpolation, self.antialias = list(mean), list(std), interpolation, antialias

    def forward(self, img: Any) -> Tensor:
        img = F.center_crop(F.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias), self.crop_size)
        if not isinstance(img, Tensor):
            img = F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, dtypes.float32), mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        return _repr_of(self, ("crop_size", "resize_size", "mean", "std", "interpolation"))
