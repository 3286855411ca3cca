"""Functionals on the forms of boxes: from one to another, and those that are no boxes any more left out."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat
from tritensor.vision import tv_tensors as tv
from tritensor.vision.ops.box_forms import box_convert
from tritensor.vision.transforms.v2.functional.registry import is_pure_tensor
from tritensor.vision.tv_tensors.boxes import BoundingBoxFormat, as_format, is_rotated_bounding_format

Form = BoundingBoxFormat


def converted(boxes: Tensor, old: Form, new: Form) -> Tensor:
    """Boxes in another form; integers stay integers. Raises ValueError between plain and turned boxes."""
    if old is new:
        return boxes
    if is_rotated_bounding_format(old) != is_rotated_bounding_format(new):
        raise ArgumentError(f"Cannot convert between rotated and unrotated bounding boxes: {old.value} to {new.value}")
    if boxes.is_floating_point() or is_rotated_bounding_format(old):
        return box_convert(boxes, old.value.lower(), new.value.lower())
    if old is Form.CXCYWH:  # half of an odd size is taken off before both corners are cut to integers
        boxes = box_convert(boxes.float(), "cxcywh", "xyxy").to(boxes.dtype)
    corners = boxes if old is not Form.XYWH else box_convert(boxes, "xywh", "xyxy")
    if new is not Form.CXCYWH:
        return box_convert(corners, "xyxy", new.value.lower()) if new is Form.XYWH else corners
    first, second = corners[..., :2], corners[..., 2:]
    return cat([(first + second).div(2, rounding_mode="floor"), second - first], -1)


def convert_bounding_box_format(
    inpt: Any, old_format: Form | str | None = None, new_format: Form | str | None = None, inplace: bool = False
) -> Any:
    """Boxes in another form; `inplace` writes into them where the size of the form allows it.

    Raises TypeError for no boxes and no new_format, ValueError for a plain tensor without old_format, or BoundingBoxes with one, and
    between plain and turned boxes.
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    new = as_format(new_format)
    if is_pure_tensor(inpt):
        if old_format is None:
            raise ArgumentError("convert_bounding_box_format: For pure tensor inputs, `old_format` has to be passed")
        values, old = inpt, as_format(old_format)
    elif isinstance(inpt, tv.BoundingBoxes):
        if old_format is not None:
            raise ArgumentError("convert_bounding_box_format: For bounding box tv_tensor inputs, `old_format` must not be passed")
        values, old = inpt.as_subclass(Tensor), inpt.format
    else:
        raise TypeError(f"convert_bounding_box_format: Input can either be a plain tensor or BoundingBoxes, but got {type(inpt)} instead")
    made = converted(values, old, new)
    if inplace and made is not values and made.shape == values.shape:
        made = values.copy_(made)
    return made if is_pure_tensor(inpt) else tv.wrap(made, like=inpt, format=new)


def find_valid_boxes(boxes: Any, format: Form, canvas_size: tuple[int, int], min_size: float = 1.0, min_area: float = 1.0) -> Tensor:
    """(n,) of bool: boxes as wide and high as min_size, of min_area, no corner outside of the canvas."""
    turned = is_rotated_bounding_format(format)
    corners = converted(boxes.as_subclass(Tensor), format, Form.XYXYXYXY if turned else Form.XYXY)
    x, y = corners[..., 0::2], corners[..., 1::2]
    if turned:
        width = ((x[..., 0] - x[..., 1]) ** 2 + (y[..., 0] - y[..., 1]) ** 2).sqrt()
        # torchvision 0.28 takes y2 - y3 and x3 - x4 for the sides of the height, and a box is left out or kept by that
        height = ((y[..., 1] - y[..., 2]) ** 2 + (x[..., 2] - x[..., 3]) ** 2).sqrt()
    else:
        width, height = x[..., 1] - x[..., 0], y[..., 1] - y[..., 0]
    large = (width >= min_size) & (height >= min_size) & (width * height >= min_area)
    inside = (corners >= 0).all(dim=-1) & (x <= canvas_size[1]).all(dim=-1) & (y <= canvas_size[0]).all(dim=-1)
    return large & inside


def sanitize_bounding_boxes(
    bounding_boxes: Any, format: Form | str | None = None, canvas_size: tuple[int, int] | None = None, min_size: float = 1.0, min_area: float = 1.0
) -> tuple[Any, Tensor]:  # fmt: skip
    """(the boxes that are valid, (n,) of bool which those are): see find_valid_boxes.

    Raises ValueError for no boxes, a plain tensor without format and canvas_size, or BoundingBoxes with them.
    """
    given = _check_facts("sanitize_bounding_boxes", bounding_boxes, tv.BoundingBoxes, format=format, canvas_size=canvas_size)
    valid = find_valid_boxes(bounding_boxes, as_format(given["format"]), given["canvas_size"], min_size, min_area)
    return _select(bounding_boxes, valid), valid


def find_valid_points(points: Any, canvas_size: tuple[int, int]) -> Tensor:
    """(n,) of bool: points, or groups of points (n, ..., 2), of which none lies outside of the canvas."""
    points = points.as_subclass(Tensor)
    x, y = points[..., 0], points[..., 1]
    inside = (x >= 0) & (x < canvas_size[1]) & (y >= 0) & (y < canvas_size[0])
    return inside.flatten(start_dim=1).all(dim=1) if inside.ndim > 1 else inside


def sanitize_keypoints(key_points: Any, canvas_size: tuple[int, int] | None = None) -> tuple[Any, Tensor]:
    """(the points, or groups of points, that lie in the canvas, (n,) of bool which those are).

    Raises ValueError for no points, a plain tensor without canvas_size, or KeyPoints with one.
    """
    given = _check_facts("sanitize_keypoints", key_points, tv.KeyPoints, canvas_size=canvas_size)
    valid = find_valid_points(key_points, given["canvas_size"])
    return _select(key_points, valid), valid


def _check_facts(name: str, inpt: Any, kind: type, **facts: Any) -> dict[str, Any]:
    """The facts of an input: those that are given with a plain tensor, those that an instance of `kind` holds itself."""
    if is_pure_tensor(inpt):
        if None in facts.values():
            raise ArgumentError(f"{name}: {' and '.join(facts)} cannot be None if the first argument is a pure tensor, got {facts}")
        return facts
    if not isinstance(inpt, kind):
        raise ArgumentError(f"{name}: the first argument must be a {kind.__name__} instance or a pure tensor, got {type(inpt).__name__}")
    if any(value is not None for value in facts.values()):
        raise ArgumentError(
            f"{name}: {' and '.join(facts)} must be None when the first argument is a {kind.__name__} instance, got {facts}"
        )
    return {fact: getattr(inpt, fact) for fact in facts}


def _select(inpt: Any, valid: Tensor) -> Any:
    return inpt[valid] if is_pure_tensor(inpt) else tv.wrap(inpt.as_subclass(Tensor)[valid], like=inpt)
