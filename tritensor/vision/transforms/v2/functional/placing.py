"""Boxes and points in an image that is flipped, resized, padded or cut."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision.transforms.functional.geometry import as_sides, center_offset, resized_shape
from tritensor.vision.transforms.functional.images import as_pair
from tritensor.vision.transforms.v2.functional.box_forms import Form
from tritensor.vision.transforms.v2.functional.clamping import Canvas, clamped
from tritensor.vision.transforms.v2.functional.points import move_boxes, rectangles
from tritensor.vision.tv_tensors.boxes import is_rotated_bounding_format

# A flip of a canvas of size n takes x to n - x; what else of a box changes depends on its form.


def _flipped(boxes: Tensor, format: Form, n: int, axis: int) -> Tensor:
    """Boxes mirrored along axis 0 (left and right) or 1 (top and bottom)."""
    columns = list(boxes.unbind(-1))
    if format is Form.XYXY:
        columns[axis], columns[axis + 2] = n - columns[axis + 2], n - columns[axis]
    elif format is Form.XYWH:
        columns[axis] = n - (columns[axis] + columns[axis + 2])
    elif format is Form.XYXYXYXY:
        columns[axis::2] = [n - c for c in columns[axis::2]]
        columns = [columns[i] for i in (2, 3, 0, 1, 6, 7, 4, 5)]  # the first corner stays the left one of the upper side
    else:
        if format is Form.XYWHR:  # the other end of the upper side comes first
            radians = columns[4].deg2rad()
            columns[0], columns[1] = columns[0] + columns[2] * radians.cos(), columns[1] - columns[2] * radians.sin()
        columns[axis] = n - columns[axis]
        if format is not Form.CXCYWH:
            columns[4] = 180 * axis - columns[4]
    return stack(columns, -1)


def horizontal_flip_bounding_boxes(bounding_boxes: Tensor, format: Form, canvas_size: Canvas) -> Tensor:
    """Boxes of an image whose left and right are exchanged."""
    return _flipped(bounding_boxes, format, canvas_size[1], 0)


def vertical_flip_bounding_boxes(bounding_boxes: Tensor, format: Form, canvas_size: Canvas) -> Tensor:
    """Boxes of an image whose top and bottom are exchanged."""
    return _flipped(bounding_boxes, format, canvas_size[0], 1)


def horizontal_flip_keypoints(keypoints: Tensor, canvas_size: Canvas) -> Tensor:
    """Points of an image whose left and right are exchanged: pixels, of which the first goes to the last."""
    return stack([canvas_size[1] - 1 - keypoints[..., 0], keypoints[..., 1]], -1)


def vertical_flip_keypoints(keypoints: Tensor, canvas_size: Canvas) -> Tensor:
    """Points of an image whose top and bottom are exchanged: pixels, of which the first goes to the last."""
    return stack([keypoints[..., 0], canvas_size[0] - 1 - keypoints[..., 1]], -1)


def resize_bounding_boxes(
    bounding_boxes: Tensor, canvas_size: Canvas, size: Any, max_size: int | None = None, format: Form = Form.XYXY, clamping_mode: str | None = "soft"
) -> tuple[Tensor, Canvas]:  # fmt: skip
    """(boxes of an image under `resize`, its size)."""
    new = resized_shape(*canvas_size, size, max_size)
    if new == tuple(canvas_size):
        return bounding_boxes, canvas_size
    ratios = [new[1] / canvas_size[1], new[0] / canvas_size[0]]
    if not is_rotated_bounding_format(format):
        return (bounding_boxes * _row(ratios * 2, bounding_boxes)).to(bounding_boxes.dtype), new
    return move_boxes(bounding_boxes, format, new, clamping_mode, lambda p: p * _row(ratios, p)).to(bounding_boxes.dtype), new


def _row(values: list[float], like: Tensor) -> Tensor:
    """Factors, in float32 for integers."""
    return (like if like.is_floating_point() else like.float()).new_tensor(values)


def resize_keypoints(keypoints: Tensor, size: Any, canvas_size: Canvas, max_size: int | None = None) -> tuple[Tensor, Canvas]:
    """(points of an image under `resize`, its size)."""
    new = resized_shape(*canvas_size, size, max_size)
    if new == tuple(canvas_size):
        return keypoints, canvas_size
    return (keypoints * _row([new[1] / canvas_size[1], new[0] / canvas_size[0]], keypoints)).to(keypoints.dtype), new


def _shifted(boxes: Tensor, format: Form, across: int, down: int) -> Tensor:
    pairs = {Form.XYXY: 2, Form.XYXYXYXY: 4}.get(format, 1)
    return boxes + boxes.new_tensor([across, down] * pairs + [0] * (boxes.shape[-1] - 2 * pairs))


def pad_bounding_boxes(
    bounding_boxes: Tensor,
    format: Form,
    canvas_size: Canvas,
    padding: Any,
    padding_mode: str = "constant",
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:
    """(boxes of an image under `pad`, its size). Raises ValueError for a border that mirrors, in which objects appear again."""
    if padding_mode != "constant":
        raise ArgumentError(f"pad: Padding mode '{padding_mode}' is not supported with bounding boxes")
    left, top, right, bottom = as_sides(padding)
    new = (canvas_size[0] + top + bottom, canvas_size[1] + left + right)
    return clamped(_shifted(bounding_boxes, format, left, top), format, new, clamping_mode), new


def pad_keypoints(keypoints: Tensor, canvas_size: Canvas, padding: Any, padding_mode: str = "constant") -> tuple[Tensor, Canvas]:
    """(points of an image under `pad`, its size). Raises ValueError for a border that mirrors."""
    if padding_mode != "constant":
        raise ArgumentError(f"pad: Padding mode '{padding_mode}' is not supported with KeyPoints (supported modes are constant)")
    left, top, right, bottom = as_sides(padding)
    return keypoints + keypoints.new_tensor([left, top]), (canvas_size[0] + top + bottom, canvas_size[1] + left + right)


def crop_bounding_boxes(
    bounding_boxes: Tensor, format: Form, top: int, left: int, height: int, width: int, clamping_mode: str | None = "soft"
) -> tuple[Tensor, Canvas]:
    """(boxes of a part of an image, its size)."""
    moved = _shifted(bounding_boxes, format, -left, -top)
    if format is Form.XYXYXYXY:
        moved = rectangles(moved)
    return clamped(moved, format, (height, width), clamping_mode), (height, width)


def crop_keypoints(keypoints: Tensor, top: int, left: int, height: int, width: int) -> tuple[Tensor, Canvas]:
    """(points of a part of an image, its size)."""
    return keypoints - keypoints.new_tensor([left, top]), (height, width)


def center_crop_bounding_boxes(
    bounding_boxes: Tensor, format: Form, canvas_size: Canvas, output_size: Any, clamping_mode: str | None = "soft"
) -> tuple[Tensor, Canvas]:
    """(boxes of the middle of an image, its size)."""
    size = as_pair("center_crop", output_size)
    return crop_bounding_boxes(bounding_boxes, format, *center_offset(canvas_size, size), *size, clamping_mode)


def center_crop_keypoints(keypoints: Tensor, canvas_size: Canvas, output_size: Any) -> tuple[Tensor, Canvas]:
    """(points of the middle of an image, its size)."""
    size = as_pair("center_crop", output_size)
    return crop_keypoints(keypoints, *center_offset(canvas_size, size), *size)


def resized_crop_bounding_boxes(
    bounding_boxes: Tensor, format: Form, top: int, left: int, height: int, width: int, size: Any, clamping_mode: str | None = "soft"
) -> tuple[Tensor, Canvas]:
    """(boxes of a part of an image that is resized, its size)."""
    boxes, canvas = crop_bounding_boxes(bounding_boxes, format, top, left, height, width, clamping_mode)
    return resize_bounding_boxes(boxes, canvas, size, format=format, clamping_mode=clamping_mode)


def resized_crop_keypoints(keypoints: Tensor, top: int, left: int, height: int, width: int, size: Any) -> tuple[Tensor, Canvas]:
    """(points of a part of an image that is resized, its size)."""
    points, canvas = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(points, size, canvas)
