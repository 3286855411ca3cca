"""Functionals that cut boxes and points to the canvas; of a turned box the sides are moved, so that its angle stays."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms.v2.functional.box_forms import Form, converted
from tritensor.vision.transforms.v2.functional.registry import is_pure_tensor
from tritensor.vision.tv_tensors.boxes import as_format, is_rotated_bounding_format

Canvas = tuple[int, int]


def clamp_bounding_boxes(
    inpt: Any, format: Form | str | None = None, canvas_size: Canvas | None = None, clamping_mode: str | None = "auto"
) -> Any:
    """Boxes cut to the canvas; mode "auto" is the boxes' own, None leaves them.

    Raises TypeError for no boxes, ValueError for another mode, a plain tensor without format, canvas_size and mode, or BoundingBoxes with them.
    """
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ArgumentError(f"clamp_bounding_boxes: clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ArgumentError(
                "clamp_bounding_boxes: For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be passed"
            )
        return clamped(inpt, as_format(format), canvas_size, clamping_mode)
    if not isinstance(inpt, tv.BoundingBoxes):
        raise TypeError(f"clamp_bounding_boxes: Input can either be a plain tensor or BoundingBoxes, but got {type(inpt)} instead")
    if format is not None or canvas_size is not None:
        raise ArgumentError("clamp_bounding_boxes: For bounding box tv_tensor inputs, `format` and `canvas_size` must not be passed")
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    return tv.wrap(clamped(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, mode), like=inpt)


def clamped(boxes: Tensor, format: Form, canvas_size: Canvas, mode: str | None) -> Tensor:
    """Boxes of a form cut to the canvas, as a copy in their own type."""
    if mode is None:
        return boxes.clone()
    if is_rotated_bounding_format(format):
        return _clamp_turned(boxes, format, canvas_size, mode)
    values = boxes if boxes.is_floating_point() else boxes.float()
    corners = converted(values, format, Form.XYXY)
    x, y = corners[..., 0::2].clamp(0, canvas_size[1]), corners[..., 1::2].clamp(0, canvas_size[0])
    inside = stack([x, y], -1).flatten(start_dim=-2)
    return converted(inside, Form.XYXY, format).to(boxes.dtype)


def clamp_keypoints(inpt: Any, canvas_size: Canvas | None = None) -> Any:
    """Points moved into the canvas, to its last row and column at most.

    Raises TypeError for no points, ValueError for a plain tensor without canvas_size, or KeyPoints with one.
    """
    if is_pure_tensor(inpt):
        if canvas_size is None:
            raise ArgumentError("clamp_keypoints: For pure tensor inputs, `canvas_size` has to be passed")
    elif not isinstance(inpt, tv.KeyPoints):
        raise TypeError(f"clamp_keypoints: Input can either be a plain tensor or KeyPoints, but got {type(inpt)} instead")
    elif canvas_size is not None:
        raise ArgumentError("clamp_keypoints: For keypoints tv_tensor inputs, `canvas_size` must not be passed")
    height, width = canvas_size or inpt.canvas_size
    values = inpt.as_subclass(Tensor)
    made = stack([values[..., 0].clamp(0, width - 1), values[..., 1].clamp(0, height - 1)], -1)
    return made if is_pure_tensor(inpt) else tv.wrap(made, like=inpt)


# Turned boxes. Corners are (n, 4) of x and (n, 4) of y. Line i leads from corner i to the next, y = slope x + height; it meets line i - 1 in corner i.
Corners = tuple[Tensor, Tensor]


def _clamp_turned(boxes: Tensor, format: Form, canvas_size: Canvas, mode: str) -> Tensor:
    flat = converted(boxes, format, Form.XYXYXYXY).reshape(-1, 8)
    now = original = (flat[:, 0::2], flat[:, 1::2])
    height, width = canvas_size
    for _ in range(4):  # cut at the left edge, then turn all by a quarter, so that the next edge is the left one
        order = _from_leftmost(now)
        original = _take(original, order)
        now = _cut_at_left(_take(now, order), original, height, width, mode)
        # as torchvision, which shifts once more by as many corners, and not back: so it names the first corner
        now, original = ((y, width - x) for x, y in (_take(now, order), _take(original, order)))
        height, width = width, height
    made = stack(now, -1).reshape(-1, 8)
    return converted(made, Form.XYXYXYXY, format).reshape(boxes.shape)


def _from_leftmost(corners: Corners) -> Tensor:
    """(n, 4): the corners' numbers from the leftmost on, of two that are equally far left the upper one."""
    x, y = (c / c.abs().amax(dim=1, keepdim=True) for c in corners)
    first = (y + x * 100).argmin(dim=1, keepdim=True)
    return (first + first.new_tensor([0, 1, 2, 3])) % 4


def _take(corners: Corners, order: Tensor) -> Corners:
    return corners[0].gather(1, order), corners[1].gather(1, order)


def _lines(corners: Corners) -> Corners:
    """(slopes, heights at x = 0) of the four lines."""
    x, y = corners
    slope = (y.roll(-1, 1) - y) / (x.roll(-1, 1) - x)
    return slope, y - slope * x


def _cut_at_left(now: Corners, original: Corners, height: int, width: int, mode: str) -> Corners:
    """Corners, the leftmost first, with those beyond x = 0 moved; what else the box covers stays covered."""
    slope, _ = _lines(now)
    moved = _move_lines(now, original, height, width, mode)
    x = -(moved - moved.roll(1, 1)) / (slope - slope.roll(1, 1))
    met = (x, slope * x + moved)
    (x1, x2, x3, x4), (y1, y2, y3, y4) = now[0].unbind(1), now[1].unbind(1)
    crossing = (x1 < 0) & ~(met[0].isnan() | met[1].isnan()).any(dim=1)
    upright = y1.isclose(y2) | y3.isclose(y4)  # sides along the axes have no slope to work with: the two left corners go to the edge
    gone = (now[0] <= 0).all(dim=1) | y1.isclose(y4) | y2.isclose(y3) | (upright & x1.isclose(x2))
    straight = (stack([x1.clamp(min=0), x2, x3, x4.clamp(min=0)], 1), now[1])
    chosen = []
    for was, at_crossing, at_edge in zip(now, met, straight, strict=True):
        found = where(upright[:, None], at_edge, where(crossing[:, None], at_crossing, was))
        chosen.append(where(gone[:, None], 0.0, found))
    return chosen[0], chosen[1]


def _move_lines(now: Corners, original: Corners, height: int, width: int, mode: str) -> Tensor:
    """The heights at x = 0 of the four lines, moved so that the corner between the first and the last is not left of the edge."""
    (a1, a2, a3, a4), (b1, b2, b3, b4) = (part.unbind(1) for part in _lines(now))
    low1, low2, low3, low4 = _lines(original)[1].unbind(1)
    # soft: both lines of the corner end at the edge, within the canvas
    b1, b4 = b2.clamp(b1, b3).clamp(0, height), b3.clamp(b2, b4).clamp(0, height)
    if mode == "hard":  # the corner itself stands at the edge, and the two other lines come nearer where they leave the canvas
        b1 = b4 = (b1 + b4) / 2
        nearest = stack([b1 * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + b1, (a3 - a2) * width + b3], 1).amax(dim=1)
        b2 = nearest.clamp(max=b2)
        at_bottom = [height * (1 - a3 / a4) + b4 * a3 / a4, height * (1 - a3 / a2) + b2 * a3 / a2]
        nearest = stack([*at_bottom, (a2 - a3) * width + b2, (a4 - a3) * width + b4], 1).amin(dim=1)
        b3 = nearest.clamp(min=b3)
    return stack([b1.clamp(low1, low3), b2.clamp(low2, low4), b3.clamp(low1, low3), b4.clamp(low2, low4)], 1)
