"""Boxes and points moved as the pixels of an image are: by an affine map, a perspective, a field of displacements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor
from tritensor.tensor.functions.creation.sequences import linspace
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.vision.transforms.functional.warping import affine_matrix, check_affine, expanded_size
from tritensor.vision.transforms.v2.functional.box_forms import Form, converted
from tritensor.vision.transforms.v2.functional.clamping import Canvas, clamped
from tritensor.vision.tv_tensors.boxes import is_rotated_bounding_format

Move = Callable[[Tensor], Tensor]  # of points (n, 2), x and y


def move_boxes(boxes: Tensor, format: Form, canvas_size: Canvas, mode: str | None, move: Move) -> Tensor:
    """Boxes whose corners are moved: plain ones the box around the four, turned ones the rectangle in their place; cut to the canvas, in boxes' form."""
    turned = is_rotated_bounding_format(format)
    between = Form.XYXYXYXY if turned else Form.XYXY
    corners = converted(boxes, format, between).reshape(-1, 8 if turned else 4)
    points = move((corners if turned else corners[:, [0, 1, 2, 1, 2, 3, 0, 3]]).reshape(-1, 2)).reshape(-1, 4, 2)
    made = rectangles(points.reshape(-1, 8)) if turned else cat([points.amin(1), points.amax(1)], 1)
    return converted(clamped(made, between, canvas_size, mode), between, format).reshape(boxes.shape)


def rectangles(boxes: Tensor) -> Tensor:
    """Turned boxes (n, 8) of quadrangles whose sides may not be at right angles: the one through the ends of the longer diagonal, along the longer side."""
    corners = boxes if boxes.dtype.name in ("float32", "float64") else boxes.float()
    x1, y1, x2, y2, x3, y3, x4, y4 = corners.unbind(-1)
    wide, high = ((x2 - x1) ** 2 + (y2 - y1) ** 2).sqrt(), ((x4 - x1) ** 2 + (y4 - y1) ** 2).sqrt()
    across, down = ops.atan2(y1 - y2, x2 - x1), ops.atan2(y1 - y4, x4 - x1)
    between = across - down
    lean = between.cos() * where(between > np.pi / 2, -1.0, 1.0)
    width = where(wide < high, wide * between.sin(), wide + high * lean)
    height = where(wide > high, high * between.sin(), high + wide * lean)
    angle = where(high > wide, down + np.pi / 2, across)
    cos, sin = angle.cos(), angle.sin()
    u, v = (width / 2 * cos, -width / 2 * sin), (height / 2 * sin, height / 2 * cos)  # from the middle to the right, and down
    made = [(x1 + x3) / 2 + i * u[0] + j * v[0] if axis == 0 else (y1 + y3) / 2 + i * u[1] + j * v[1]
            for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1)) for axis in (0, 1)]  # fmt: skip
    return stack(made, -1).to(boxes.dtype)


def _floats(points: Tensor) -> Tensor:
    return points if points.is_floating_point() else points.to(dtypes.float32)


def _linear(matrix: np.ndarray, points: Tensor) -> Tensor:
    """Points under a map (2, 3) or (3, 3), in homogeneous coordinates."""
    values = _floats(points)
    theta = as_tensor(matrix.T, dtype=values.dtype, device=values.device)
    return cat([values, values.new_ones(values.shape[0], 1)], 1) @ theta


def _affine_map(canvas: Canvas, angle: float, translate: Any, scale: float, shear: Any, center: Any) -> np.ndarray:
    """(2, 3): where each point goes."""
    translate, shear = check_affine(translate, scale, shear)
    middle = (canvas[1] * 0.5, canvas[0] * 0.5) if center is None else center
    return np.array(affine_matrix(middle, angle, translate, scale, shear, forward=True)).reshape(2, 3)


def _grown(forward: np.ndarray, canvas: Canvas) -> tuple[np.ndarray, Canvas]:
    """(the map into an image that holds all of the canvas, its size)."""
    height, width = canvas
    ends = np.array([[0, 0, 1], [0, height, 1], [width, height, 1], [width, 0, 1]], np.float64) @ forward.T
    back = np.linalg.inv(np.vstack([forward, [0.0, 0.0, 1.0]]))
    wide, high = expanded_size([float(v) for v in back[:2].reshape(6)], width, height)
    return forward - np.outer(ends.min(0), [0.0, 0.0, 1.0]), (high, wide)


def affine_bounding_boxes(
    bounding_boxes: Tensor, format: Form, canvas_size: Canvas, angle: float, translate: Any, scale: float, shear: Any, center: Any = None,
    clamping_mode: str | None = "soft",
) -> Tensor:  # fmt: skip
    """Boxes under `affine`."""
    forward = _affine_map(canvas_size, angle, translate, scale, shear, center)
    return _boxes_under(forward, bounding_boxes, format, canvas_size, clamping_mode)


def _boxes_under(forward: np.ndarray, boxes: Tensor, format: Form, canvas: Canvas, mode: str | None) -> Tensor:
    if boxes.numel() == 0:
        return boxes
    return move_boxes(_floats(boxes), format, canvas, mode, lambda p: _linear(forward, p)).to(boxes.dtype)


def affine_keypoints(
    keypoints: Tensor, canvas_size: Canvas, angle: float, translate: Any, scale: float, shear: Any, center: Any = None
) -> tuple[Tensor, Canvas]:  # fmt: skip
    """(points under `affine`, the canvas)."""
    forward = _affine_map(canvas_size, angle, translate, scale, shear, center)
    return _points_under(lambda p: _linear(forward, p), keypoints), canvas_size


def _points_under(move: Move, points: Tensor) -> Tensor:
    return points if points.numel() == 0 else move(points.reshape(-1, 2)).to(points.dtype).reshape(points.shape)


def _rotation(angle: float, canvas: Canvas, center: Any, expand: bool) -> tuple[np.ndarray, Canvas]:
    forward = _affine_map(canvas, -angle, (0.0, 0.0), 1.0, (0.0, 0.0), center)
    return _grown(forward, canvas) if expand else (forward, canvas)


def rotate_bounding_boxes(
    bounding_boxes: Tensor, format: Form, canvas_size: Canvas, angle: float, expand: bool = False, center: Sequence[float] | None = None,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, Canvas]:  # fmt: skip
    """(boxes under `rotate`, the canvas, which `expand` lets grow)."""
    if bounding_boxes.numel() == 0:
        return bounding_boxes, canvas_size
    forward, canvas = _rotation(angle, canvas_size, center, expand)
    return _boxes_under(forward, bounding_boxes, format, canvas, clamping_mode), canvas


def rotate_keypoints(
    keypoints: Tensor, canvas_size: Canvas, angle: float, expand: bool = False, center: Sequence[float] | None = None
) -> tuple[Tensor, Canvas]:
    """(points under `rotate`, the canvas, which `expand` lets grow)."""
    if keypoints.numel() == 0:
        return keypoints, canvas_size
    forward, canvas = _rotation(angle, canvas_size, center, expand)
    return _points_under(lambda p: _linear(forward, p), keypoints), canvas


def _perspective_move(coefficients: Sequence[float]) -> Move:
    """Where points go: the coefficients say where each comes from. Raises RuntimeError where that has no inverse."""
    c = list(coefficients)
    if c[0] * c[4] - c[1] * c[3] == 0:
        raise ArgumentError(f"perspective: Provided perspective_coeffs {c} can not be inverted to move points")
    forward = np.linalg.inv(np.array([*c, 1.0], np.float64).reshape(3, 3))
    forward /= forward[2, 2]

    def move(points: Tensor) -> Tensor:
        x, y, depth = _linear(forward, points).unbind(1)
        return stack([x / depth, y / depth], 1)

    return move


def perspective_moved_boxes(boxes: Tensor, format: Form, canvas_size: Canvas, coefficients: Sequence[float], mode: str | None) -> Tensor:
    """Boxes under the map of eight coefficients."""
    return boxes if boxes.numel() == 0 else move_boxes(boxes, format, canvas_size, mode, _perspective_move(coefficients)).to(boxes.dtype)


def perspective_moved_points(points: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Points under the map of eight coefficients."""
    return points if points.numel() == 0 else _points_under(_perspective_move(coefficients), points)


def _elastic_move(canvas: Canvas, displacement: Any, dtype: Any, device: Any, up: bool) -> Move:
    """Each point less the displacement of its pixel, nearly the inverse of what the pixels undergo. `up` rounds the positions of pixels up.

    Raises TypeError for a displacement that is no tensor, ValueError for another shape than (1, height, width, 2).
    """
    height, width = canvas
    if not isinstance(displacement, Tensor):
        raise TypeError(f"elastic: Argument displacement should be a Tensor, got {type(displacement).__name__}")
    if tuple(displacement.shape) != (1, height, width, 2):
        raise ShapeError(f"elastic: Argument displacement shape should be {(1, height, width, 2)}, but given {tuple(displacement.shape)}")
    far = displacement.to(dtype=dtype, device=device)[0]

    def move(points: Tensor) -> Tensor:
        at = (points.ceil() if up and points.is_floating_point() else points).long()
        columns, rows = at[:, 0].clamp(0, width - 1), at[:, 1].clamp(0, height - 1)
        places = [linspace((1 - n) / n, (n - 1) / n, n, dtype=dtype, device=device) for n in (width, height)]
        still = stack([places[0][columns], places[1][rows]], 1)
        return (still - far[rows, columns] + 1) * (0.5 * far.new_tensor([width, height])) - 0.5

    return move


def elastic_bounding_boxes(
    bounding_boxes: Tensor, format: Form, canvas_size: Canvas, displacement: Tensor, clamping_mode: str | None = "soft"
) -> Tensor:
    """Boxes under `elastic`, a turned one by its middle. Raises as _elastic_move does."""
    kind = bounding_boxes.dtype if bounding_boxes.is_floating_point() else dtypes.float32
    move = _elastic_move(canvas_size, displacement, kind, bounding_boxes.device, up=True)
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    if not is_rotated_bounding_format(format):
        return move_boxes(bounding_boxes, format, canvas_size, clamping_mode, lambda p: move(p).to(bounding_boxes.dtype))
    boxes = converted(bounding_boxes, format, Form.CXCYWHR).reshape(-1, 5)
    made = cat([move(boxes[:, :2]), boxes[:, 2:]], 1).to(boxes.dtype)
    return converted(clamped(made, Form.CXCYWHR, canvas_size, clamping_mode), Form.CXCYWHR, format).reshape(bounding_boxes.shape)


def elastic_keypoints(keypoints: Tensor, canvas_size: Canvas, displacement: Tensor) -> Tensor:
    """Points under `elastic`. Raises as _elastic_move does."""
    kind = keypoints.dtype if keypoints.is_floating_point() else dtypes.float32
    return _points_under(_elastic_move(canvas_size, displacement, kind, keypoints.device, up=False), keypoints)
