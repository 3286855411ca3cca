"""Transforms of boxes and points alone: their form, cut to the canvas, those left out that are none any more."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.functional.box_forms import find_valid_boxes, find_valid_points
from tritensor.vision.transforms.v2.samples import as_label_list, as_labels_getter, get_bounding_boxes, get_keypoints
from tritensor.vision.tv_tensors.boxes import CLAMPING_MODES


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another form: `functional.convert_bounding_box_format`."""

    _transformed_types = (tv.BoundingBoxes,)

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Boxes cut to the canvas: `functional.clamp_bounding_boxes`; "auto" is their own mode."""

    _transformed_types = (tv.BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(Transform):
    """Points moved into the canvas: `functional.clamp_keypoints`."""

    _transformed_types = (tv.KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SetClampingMode(Transform):
    """Boxes with another clamping_mode, which the transforms that follow heed. Raises ValueError for another than "soft", "hard" and None."""

    _transformed_types = (tv.BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in CLAMPING_MODES:
            raise ArgumentError(f"SetClampingMode: clamping_mode must be soft, hard or None, got {clamping_mode}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = inpt.clone()
        out.clamping_mode = self.clamping_mode
        return out


class _Sanitizing(Transform):
    """Base of the two: what is not valid is left out, with its labels."""

    def _take_labels(self, labels_getter: Any) -> None:
        self.labels_getter, self._labels_getter = labels_getter, as_labels_getter(labels_getter)

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor, str]:
        """(the objects of the sample, which of them are valid, what they are called)."""
        raise NotImplementedError

    def _follows(self, inpt: Any) -> bool:
        """Whether a leaf has an entry for each object."""
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        """The sample without what is not valid."""
        sample = inputs if len(inputs) > 1 else inputs[0]
        labels = self._labels_getter(sample)
        flat_inputs, spec = tree_flatten(sample)
        objects, valid, what = self._find_valid(flat_inputs)
        params = {"valid": valid, "labels": as_label_list(labels, objects.shape[0], what)}
        return tree_unflatten([self.transform(inpt, params) for inpt in flat_inputs], spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        valid, follows = params["valid"], self._follows(inpt)
        if not (follows or any(inpt is label for label in params["labels"])):
            return inpt
        if isinstance(inpt, tv.Mask) and inpt.shape[0] != valid.shape[0]:  # a mask of all objects
            return inpt
        return tv.wrap(inpt.as_subclass(Tensor)[valid], like=inpt) if follows else inpt[valid]


class SanitizeBoundingBoxes(_Sanitizing):
    """Boxes that are too small, or reach over the edge, left out, with their labels and masks: `functional.sanitize_bounding_boxes`.

    Args:
        min_size, min_area: 1 or more.
        labels_getter: a function from the sample to its labels, a tensor or several; "default" looks for them, None has none.

    Raises ValueError for smaller sizes, a sample without boxes, labels of another number.
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Any = "default") -> None:
        if min_size < 1 or min_area < 1:
            raise ArgumentError(f"SanitizeBoundingBoxes: min_size and min_area must be >= 1, got {min_size} and {min_area}")
        super().__init__()
        self.min_size, self.min_area = min_size, min_area
        self._take_labels(labels_getter)

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor, str]:
        boxes = get_bounding_boxes(flat_inputs)
        return boxes, find_valid_boxes(boxes, boxes.format, boxes.canvas_size, self.min_size, self.min_area), "boxes"

    def _follows(self, inpt: Any) -> bool:
        return isinstance(inpt, tv.BoundingBoxes | tv.Mask)


class SanitizeKeyPoints(_Sanitizing):
    """Points outside of the canvas left out, with their labels: `functional.sanitize_keypoints`. Raises ValueError for a sample without points."""

    def __init__(self, labels_getter: Any = None) -> None:
        super().__init__()
        self._take_labels(labels_getter)

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor, str]:
        points = get_keypoints(flat_inputs)
        return points, find_valid_points(points, points.canvas_size), "keypoints"

    def _follows(self, inpt: Any) -> bool:
        return isinstance(inpt, tv.KeyPoints)
