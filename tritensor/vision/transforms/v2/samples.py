"""Questions about samples: of which kinds their leaves are, how large the images are, where boxes and labels stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.functional import is_pure_tensor

Check = type | Callable[[Any], bool]
IMAGES: tuple[Check, ...] = (is_pure_tensor, tv.Image, is_pil_image, tv.Video)


def check_type(obj: Any, types_or_checks: tuple[Check, ...]) -> bool:
    """Whether an object is of one of the types, or passes one of the checks."""
    return any(isinstance(obj, t) if isinstance(t, type) else t(obj) for t in types_or_checks)


def has_any(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether one of the leaves is of one of the types."""
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether there is a leaf of each of the types."""
    return all(has_any(flat_inputs, t) for t in types_or_checks)


def get_bounding_boxes(flat_inputs: list[Any]) -> Any:
    """The boxes of a sample, which has one object of them. Raises ValueError where there is none."""
    return _first(flat_inputs, tv.BoundingBoxes, "bounding boxes")


def get_keypoints(flat_inputs: list[Any]) -> Any:
    """The points of a sample, which has one object of them. Raises ValueError where there is none."""
    return _first(flat_inputs, tv.KeyPoints, "keypoints")


def _first(flat_inputs: list[Any], kind: type, what: str) -> Any:
    found = next((inpt for inpt in flat_inputs if isinstance(inpt, kind)), None)
    if found is None:
        raise ArgumentError(f"No {what} were found in the sample; give tv_tensors.{kind.__name__} beside the image")
    return found


def query_chw(flat_inputs: list[Any]) -> tuple[int, int, int]:
    """(channels, height, width) of the images of a sample. Raises TypeError for none, ValueError where they differ."""
    found = {tuple(F.get_dimensions(inpt)) for inpt in flat_inputs if check_type(inpt, IMAGES)}
    return _only(found, "image or video was", "CxHxW")


def query_size(flat_inputs: list[Any]) -> tuple[int, int]:
    """(height, width) of the images, masks and canvases of a sample. Raises TypeError for none, ValueError where they differ."""
    kinds = (*IMAGES, tv.Mask, tv.BoundingBoxes, tv.KeyPoints)
    found = {tuple(F.get_size(inpt)) for inpt in flat_inputs if check_type(inpt, kinds)}
    return _only(found, "image, video, mask, bounding box of keypoint was", "HxW")


def _only(found: set[Any], what: str, sizes: str) -> Any:
    if not found:
        raise TypeError(f"No {what} found in the sample")
    if len(found) > 1:
        raise ArgumentError(f"Found multiple {sizes} dimensions in the sample: {', '.join(map(str, sorted(found)))}")
    return found.pop()


def as_labels_getter(labels_getter: Any) -> Callable[[Any], Any]:
    """A function from a sample to its labels: "default" looks for them, None has none. Raises ValueError for anything else."""
    if labels_getter == "default":
        return find_labels
    if labels_getter is not None and not callable(labels_getter):
        raise ArgumentError(f"labels_getter should either be 'default', a callable, or None, but got {labels_getter}")
    return labels_getter or (lambda _: None)


def find_labels(inputs: Any) -> Any:
    """The labels of a sample: of a tuple the second item, if that is a tensor; else in it, or in a dict, those under the key "labels", or one like it.

    Raises ValueError where there are none.
    """
    held = inputs[1] if isinstance(inputs, tuple | list) else inputs
    if is_pure_tensor(held):
        return held
    if not isinstance(held, Mapping):
        raise ArgumentError(
            "When using the default labels_getter, the input passed to forward must be a dictionary or a two-tuple whose second item is a "
            f"dictionary or a tensor, but got {type(held).__name__} instead"
        )
    key = next((k for k in held if k.lower() == "labels"), next((k for k in held if "label" in k.lower()), None))
    if key is None:
        raise ArgumentError(
            "Could not infer where the labels are in the sample: give labels_getter a function, or None where there are none"
        )
    return held[key]


def as_label_list(labels: Any, count: int, what: str) -> tuple[Tensor, ...]:
    """Labels of a sample, one tensor, several, or None, of `count` objects each. Raises ValueError for others."""
    given = () if labels is None else labels if isinstance(labels, tuple | list) else (labels,)
    for label in given:
        if not isinstance(label, Tensor):
            raise ArgumentError(f"The labels in the input to forward() must be a tensor or None, got {type(label)} instead")
        if label.shape[0] != count:
            raise ArgumentError(f"Number of {what} ({count}) must match the number of labels. Found labels with shape={tuple(label.shape)}")
    return tuple(given)
