"""Mixtures of a batch's images, or videos, and labels: MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019)."""

from __future__ import annotations

import math
from typing import Any

import tritensor.nn.functional as F
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.creation.gammas import sample_dirichlet
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.functional import is_pure_tensor
from tritensor.vision.transforms.v2.samples import as_labels_getter, has_any, query_size


class _Mixing(Transform):
    """Takes a batch of images and their labels, in any sample, and gives both mixed, each sample with the one before it.

    Args:
        alpha: of the Beta distribution that a sample's own share is drawn from, one for the batch.
        num_classes: how many classes there are, where labels are numbers of classes (n,), and not probabilities (n, classes).
        labels_getter: a function from the sample to its labels; "default" looks for them.

    Raises:
        ValueError: labels without num_classes, or of another number of classes; PIL images, boxes, masks and points.
        ShapeError: images that are no batch (n, channels, height, width), or of another n than the labels.
    """

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default") -> None:
        super().__init__()
        self.alpha, self.num_classes = float(alpha), num_classes
        self._labels_getter = as_labels_getter(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        """The sample, mixed."""
        name, sample = type(self).__name__, inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = tree_flatten(sample)
        if has_any(flat_inputs, is_pil_image, tv.BoundingBoxes, tv.Mask, tv.KeyPoints):
            raise ArgumentError(f"{name}() does not support PIL images, bounding boxes, keypoints and masks")
        labels = self._check_labels(self._labels_getter(sample))
        needed = self._needs_transform_list(flat_inputs)
        params = self.make_params([inpt for inpt, needs in zip(flat_inputs, needed, strict=True) if needs])
        made = []
        for inpt, needs in zip(flat_inputs, needed, strict=True):
            if inpt is labels:
                inpt = _blend(self._to_probabilities(labels), params["share"])
            elif needs and (isinstance(inpt, tv.Image | tv.Video) or is_pure_tensor(inpt)):
                inpt = self._mix(inpt, labels.shape[0], params)
            made.append(inpt)
        return tree_unflatten(made, spec)

    def _check_labels(self, labels: Any) -> Tensor:
        name = type(self).__name__
        if not isinstance(labels, Tensor):
            raise ArgumentError(f"{name}: The labels must be a tensor, but got {type(labels)} instead")
        if labels.ndim not in (1, 2):
            raise ShapeError(f"{name}: labels {tuple(labels.shape)}; labels should be index based, (n,), or probabilities, (n, classes)")
        if labels.ndim == 1 and self.num_classes is None:
            raise ArgumentError(
                f"{name}: labels {tuple(labels.shape)} are numbers of classes; num_classes must be passed if they are index-based"
            )
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[1]):
            raise ArgumentError(f"{name}: labels {tuple(labels.shape)}: the number of classes must match num_classes, {self.num_classes}")
        return labels

    def _mix(self, inpt: Any, count: int, params: dict[str, Any]) -> Any:
        name, video = type(self).__name__, isinstance(inpt, tv.Video)
        if inpt.ndim != 4 + video:
            raise ShapeError(f"{name}: Expected a batched input with {4 + video} dims, but got {tuple(inpt.shape)}")
        if inpt.shape[0] != count:
            raise ShapeError(
                f"{name}: The batch size of the image or video does not match the batch size of the labels: {inpt.shape[0]} != {count}"
            )
        made = self._mix_images(inpt.as_subclass(Tensor), params)
        return made if is_pure_tensor(inpt) else tv.wrap(made, like=inpt)

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def _draw_share(self) -> float:
        return float(sample_dirichlet(full((2,), self.alpha))[0])  # Beta(alpha, alpha)

    def _to_probabilities(self, labels: Tensor) -> Tensor:
        known = F.one_hot(labels, num_classes=self.num_classes or 0) if labels.ndim == 1 else labels  # mixed labels are probabilities
        return known if known.is_floating_point() else known.float()


def _blend(x: Tensor, share: float) -> Tensor:
    """share x + (1 - share) of the sample before, in x's type."""
    return (x.roll(1, 0) * (1.0 - share)).to(x.dtype) + (x * share).to(x.dtype)


class MixUp(_Mixing):
    """Images and labels blended with those of the sample before."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"share": self._draw_share()}

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        return _blend(images, params["share"])


class CutMix(_Mixing):
    """A box of each image is that of the sample before; labels are mixed by the box's area."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        x, y = draws.integer(0, width), draws.integer(0, height)  # its middle, anywhere in the image
        half = 0.5 * math.sqrt(1.0 - self._draw_share())  # the box has 1 - share of the area, in the image's proportions
        across, down = int(half * width), int(half * height)
        left, right, top, bottom = max(x - across, 0), min(x + across, width), max(y - down, 0), min(y + down, height)
        # the share that is left, not the one that was drawn: a box that reaches over the edge is smaller
        return {"box": (left, top, right, bottom), "share": 1.0 - (right - left) * (bottom - top) / (width * height)}

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        left, top, right, bottom = params["box"]
        out = images.clone()
        out[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
        return out
