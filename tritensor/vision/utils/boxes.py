"""Bounding boxes drawn on an image."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.vision.pillow import image_from_array, pillow


def _choose_colours(colors: Any, count: int) -> list[Any]:
    """A colour for each of so many: one for all, a list, or evenly around the colour wheel."""
    if colors is None:  # hues all around the wheel, so that neighbours differ
        return [tuple(int(255 * c) for c in colorsys.hsv_to_rgb(i / max(count, 1), 1.0, 1.0)) for i in range(count)]
    if isinstance(colors, list):
        if len(colors) < count:  # more are allowed, as in torchvision
            raise ArgumentError(f"draw_bounding_boxes: {len(colors)} colors for {count} boxes; give one for each, or one for all")
        return colors[:count]
    return [colors] * count


def draw_bounding_boxes(
    image: Tensor, boxes: Tensor, labels: Sequence[str | None] | None = None, colors: Any = None, fill: bool = False, width: int = 1
) -> Tensor:
    """An image (3, h, w), of uint8 or of floats from 0 to 1, with boxes (n, 4), each (left, top, right, bottom) in pixels, drawn on a copy.

    Args:
        labels: a text for each box, None for none.
        colors: one colour for all, or a list, names or (red, green, blue); None takes some around the colour wheel.
        fill: colour the inside, too, at four tenths.
        width: of the lines, in pixels.

    Raises:
        ShapeError: other shapes. ValueError: boxes whose right or bottom lies before their left or top, other numbers of labels or colours.
    """
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ShapeError(f"draw_bounding_boxes: image is {tuple(getattr(image, 'shape', ()))}; give a tensor (3, height, width)")
    if boxes.ndim != 2 or boxes.shape[-1] != 4:
        raise ShapeError(f"draw_bounding_boxes: boxes {tuple(boxes.shape)}; give (n, 4)")
    found = boxes.tolist()
    if any(right < left or bottom < top for left, top, right, bottom in found):
        raise ArgumentError("draw_bounding_boxes: a box ends before it begins; give (left, top, right, bottom)")
    if labels is not None and len(labels) != len(found):
        raise ArgumentError(f"draw_bounding_boxes: {len(labels)} labels for {len(found)} boxes")
    values = (image * 255 if image.is_floating_point() else image).to(dtypes.uint8).cpu().numpy()
    picture = image_from_array(np.ascontiguousarray(np.broadcast_to(values, (3, *values.shape[1:])).transpose(1, 2, 0)), "RGB")
    draw = pillow("ImageDraw").Draw(picture, "RGBA" if fill else None)  # only RGBA blends with the picture below
    for box, colour, label in zip(found, _choose_colours(colors, len(found)), labels or [None] * len(found), strict=True):
        inside = None
        if fill:
            rgb = pillow("ImageColor").getrgb(colour) if isinstance(colour, str) else tuple(colour)
            inside = (*rgb[:3], 102)  # four tenths of 255, as torchvision has it
        draw.rectangle(box, outline=colour, width=width, fill=inside)
        if label is not None:
            draw.text((box[0] + 1 + width, box[1] + 1 + width), label, fill=colour)
    out = Tensor.wrap(np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))).to(image.device)
    return (out / 255).to(image.dtype) if image.is_floating_point() else out
