"""Forms of boxes: two corners, a corner or the centre with width and height, with an angle, or four corners; from each to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import stack

_PLAIN = ("xyxy", "xywh", "cxcywh")
_ROTATED = {"xywhr": 5, "cxcywhr": 5, "xyxyxyxy": 8}


def _columns(boxes: Tensor) -> list[Tensor]:
    return [boxes[..., k] for k in range(boxes.shape[-1])]


def _joined(columns: Sequence[Tensor], like: Tensor) -> Tensor:
    """Turned boxes of their columns, rounded where they were integers."""
    made = stack(columns, -1)
    return made if like.is_floating_point() else made.round().to(like.dtype)


def _to_corners(boxes: Tensor, form: str) -> Tensor:
    a, b, c, d = _columns(boxes)
    if form == "xywh":
        return stack((a, b, a + c, b + d), -1)
    return stack((a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d), -1)


def _from_corners(boxes: Tensor, form: str) -> Tensor:
    left, top, right, bottom = _columns(boxes)
    if form == "xywh":
        return stack((left, top, right - left, bottom - top), -1)
    return stack(((left + right) / 2, (top + bottom) / 2, right - left, bottom - top), -1)


def _radians(degrees: Tensor) -> Tensor:
    return (degrees if degrees.is_floating_point() else degrees.float()).deg2rad()


def _turned_corner_of_centred(boxes: Tensor) -> Tensor:
    """The first corner, turned about the centre, in the centre's place."""
    cx, cy, w, h, r = _columns(boxes)
    cos, sin = _radians(r).cos(), _radians(r).sin()
    return _joined((cx - w / 2 * cos - h / 2 * sin, cy - h / 2 * cos + w / 2 * sin, w, h, r), boxes)


def _centred_of_turned_corner(boxes: Tensor) -> Tensor:
    x, y, w, h, r = _columns(boxes)
    cos, sin = _radians(r).cos(), _radians(r).sin()
    return _joined((x + w / 2 * cos + h / 2 * sin, y - w / 2 * sin + h / 2 * cos, w, h, r), boxes)


def _four_of_turned_corner(boxes: Tensor) -> Tensor:
    x, y, w, h, r = _columns(boxes)
    cos, sin = _radians(r).cos(), _radians(r).sin()
    across, down = (w * cos, -w * sin), (h * sin, h * cos)
    corners = (x, y, x + across[0], y + across[1], x + across[0] + down[0], y + across[1] + down[1], x + down[0], y + down[1])
    return _joined(corners, boxes)


def _turned_corner_of_four(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2, x3, y3, _, _ = _columns(boxes if boxes.is_floating_point() else boxes.float())
    angle = ops.atan2(y1 - y2, x2 - x1).rad2deg()
    width, height = ((x2 - x1) ** 2 + (y2 - y1) ** 2).sqrt(), ((x3 - x2) ** 2 + (y3 - y2) ** 2).sqrt()
    return _joined((x1, y1, width, height, angle), boxes)


_TO_TURNED: dict[str, Callable[[Tensor], Tensor]] = {
    "xywhr": lambda b: b, "cxcywhr": _turned_corner_of_centred, "xyxyxyxy": _turned_corner_of_four,
}  # fmt: skip
_FROM_TURNED: dict[str, Callable[[Tensor], Tensor]] = {
    "xywhr": lambda b: b, "cxcywhr": _centred_of_turned_corner, "xyxyxyxy": _four_of_turned_corner,
}  # fmt: skip


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes (..., 4) in another form: "xyxy" two corners, "xywh" a corner and the sizes, "cxcywh" the centre and the sizes.

    Turned boxes: "xywhr" and "cxcywhr" (..., 5), with an angle in degrees, and "xyxyxyxy" (..., 8), four corners.
    Raises ValueError for other forms, and from plain ones to turned ones; ShapeError for another last size.
    """
    for name, form in (("in_fmt", in_fmt), ("out_fmt", out_fmt)):
        if form not in _PLAIN and form not in _ROTATED:
            raise ArgumentError(f"box_convert: {name} is {form!r}; give one of {', '.join((*_PLAIN, *_ROTATED))}")
    if (in_fmt in _PLAIN) != (out_fmt in _PLAIN):
        raise ArgumentError(f"box_convert: {in_fmt!r} to {out_fmt!r}: turned boxes and plain ones are not converted into one another")
    size = _ROTATED.get(in_fmt, 4)
    if boxes.shape[-1] != size:
        raise ShapeError(f"box_convert: boxes {tuple(boxes.shape)} in the form {in_fmt!r}; give (..., {size})")
    if in_fmt == out_fmt:
        return boxes.clone()
    if in_fmt in _ROTATED:
        return _FROM_TURNED[out_fmt](_TO_TURNED[in_fmt](boxes))
    corners = boxes if in_fmt == "xyxy" else _to_corners(boxes, in_fmt)
    return corners if out_fmt == "xyxy" else _from_corners(corners, out_fmt)
