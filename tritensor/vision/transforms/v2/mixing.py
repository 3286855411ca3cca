"""Mixtures of a batch's images and labels: MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019)."""

from __future__ import annotations

import math
from typing import Any

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.creation.gammas import sample_dirichlet
from tritensor.vision.transforms import draws


class _Mixing(nn.Module):
    """Takes (images, labels), or the two as a tuple, and gives both mixed, each sample with the one before it.

    Args:
        alpha: of the Beta distribution that a sample's own share is drawn from, one for the batch.
        num_classes: how many classes there are, where labels are numbers of classes (n,), and not probabilities (n, classes).

    Raises:
        ValueError: labels without num_classes, or of another number of classes.
        ShapeError: images that are no batch (n, channels, height, width), or of another n than the labels.
    """

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        super().__init__()
        self.alpha, self.num_classes = float(alpha), num_classes

    def forward(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        name, pair = type(self).__name__, inputs[0] if len(inputs) == 1 else inputs
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(x, Tensor) for x in pair)):
            raise TypeError(f"{name}: give two tensors, a batch of images and their labels")
        images, labels = pair
        if labels.ndim not in (1, 2) or images.ndim != 4 or images.shape[0] != labels.shape[0]:
            expected = "give (n, channels, height, width), and (n,) or (n, classes)"
            raise ShapeError(f"{name}: images {tuple(images.shape)} and labels {tuple(labels.shape)}; {expected}")
        if labels.ndim == 1 and self.num_classes is None:
            raise ArgumentError(f"{name}: labels {tuple(labels.shape)} are numbers of classes; give num_classes")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[1]):
            raise ArgumentError(
                f"{name}: labels {tuple(labels.shape)} have {labels.shape[1]} classes, and num_classes is {self.num_classes}"
            )
        share = float(sample_dirichlet(full((2,), self.alpha))[0])  # Beta(alpha, alpha)
        mixed, share = self._mix_images(images, share)
        return mixed, _blend(self._to_probabilities(labels), share)

    def _mix_images(self, images: Tensor, share: float) -> tuple[Tensor, float]:
        """(the images mixed, the share of each that is its own)."""
        raise NotImplementedError

    def _to_probabilities(self, labels: Tensor) -> Tensor:
        known = F.one_hot(labels, num_classes=self.num_classes or 0) if labels.ndim == 1 else labels  # mixed labels are probabilities
        return known if known.is_floating_point() else known.float()


def _blend(x: Tensor, share: float) -> Tensor:
    """share x + (1 - share) of the sample before, in x's type."""
    return (x.roll(1, 0) * (1.0 - share)).to(x.dtype) + (x * share).to(x.dtype)


class MixUp(_Mixing):
    """Images and labels blended with those of the sample before."""

    def _mix_images(self, images: Tensor, share: float) -> tuple[Tensor, float]:
        return _blend(images, share), share


class CutMix(_Mixing):
    """A box of each image is that of the sample before; labels are mixed by the box's area."""

    def _mix_images(self, images: Tensor, share: float) -> tuple[Tensor, float]:
        height, width = images.shape[-2:]
        x, y = draws.integer(0, width), draws.integer(0, height)  # its middle, anywhere in the image
        half = 0.5 * math.sqrt(1.0 - share)  # the box has 1 - share of the area, in the image's proportions
        across, down = int(half * width), int(half * height)
        left, right, top, bottom = max(x - across, 0), min(x + across, width), max(y - down, 0), min(y + down, height)
        out = images.clone()
        out[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
        # the share that is left, not the one that was drawn: a box that reaches over the edge is smaller
        return out, 1.0 - (right - left) * (bottom - top) / (width * height)
