"""Functionals that move pixels, and boxes, masks and points with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.v2.functional import pixels, placing, points
from tritensor.vision.transforms.v2.functional.box_forms import Form
from tritensor.vision.transforms.v2.functional.clamping import Canvas
from tritensor.vision.transforms.v2.functional.pixels import BILINEAR, NEAREST
from tritensor.vision.transforms.v2.functional.registry import functional


@functional(
    pil=first.hflip, image=first.hflip, mask=pixels.horizontal_flip_mask, bounding_boxes=placing.horizontal_flip_bounding_boxes,
    keypoints=placing.horizontal_flip_keypoints,
)  # fmt: skip
def horizontal_flip(inpt: Any) -> Any:
    """Left and right exchanged."""


@functional(
    pil=first.vflip, image=first.vflip, mask=pixels.vertical_flip_mask, bounding_boxes=placing.vertical_flip_bounding_boxes,
    keypoints=placing.vertical_flip_keypoints,
)  # fmt: skip
def vertical_flip(inpt: Any) -> Any:
    """Top and bottom exchanged."""


hflip, vflip = horizontal_flip, vertical_flip


@functional(
    pil=pixels.resize_pil, image=pixels.resize_image, mask=pixels.resize_mask, bounding_boxes=placing.resize_bounding_boxes,
    keypoints=placing.resize_keypoints,
)  # fmt: skip
def resize(inpt: Any, size: Any, interpolation: Any = BILINEAR, max_size: int | None = None, antialias: bool | None = True) -> Any:
    """Another size: (height, width), or the length of the shorter edge, the other in proportion, at most max_size; None fits the longer edge to max_size.

    interpolation: an InterpolationMode, its word, or Pillow's number. Raises ValueError for sizes that are none.
    """


@functional(
    pil=pixels.affine_image, image=pixels.affine_image, mask=pixels.affine_mask, bounding_boxes=points.affine_bounding_boxes,
    keypoints=points.affine_keypoints,
)  # fmt: skip
def affine(
    inpt: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: Any = NEAREST, fill: Any = None, center: Any = None
) -> Any:
    """Turned by `angle` degrees with the clock, sheared by degrees (x, y), scaled, then moved by `translate` pixels (x, y), around `center` (x, y).

    A box becomes the box around its moved corners. Raises ValueError for a scale that is not positive, or what is no pair.
    """


@functional(
    pil=pixels.rotate_image, image=pixels.rotate_image, mask=pixels.rotate_mask, bounding_boxes=points.rotate_bounding_boxes,
    keypoints=points.rotate_keypoints,
)  # fmt: skip
def rotate(
    inpt: Any, angle: float, interpolation: Any = NEAREST, expand: bool = False, center: Sequence[float] | None = None, fill: Any = None
) -> Any:
    """Turned by `angle` degrees, against the clock, around `center` (x, y; default: the middle). `expand` makes room for all of it."""


def perspective_bounding_boxes(
    bounding_boxes: Tensor, format: Form, canvas_size: Canvas, startpoints: Any, endpoints: Any, coefficients: Any = None,
    clamping_mode: str | None = "soft",
) -> Tensor:  # fmt: skip
    """Boxes under `perspective`."""
    found = pixels.as_coefficients(startpoints, endpoints, coefficients)
    return points.perspective_moved_boxes(bounding_boxes, format, canvas_size, found, clamping_mode)


def perspective_keypoints(keypoints: Tensor, canvas_size: Canvas, startpoints: Any, endpoints: Any, coefficients: Any = None) -> Tensor:
    """Points under `perspective`."""
    return points.perspective_moved_points(keypoints, pixels.as_coefficients(startpoints, endpoints, coefficients))


@functional(
    pil=pixels.perspective_image, image=pixels.perspective_image, mask=pixels.perspective_mask, bounding_boxes=perspective_bounding_boxes,
    keypoints=perspective_keypoints,
)  # fmt: skip
def perspective(
    inpt: Any, startpoints: Any, endpoints: Any, interpolation: Any = BILINEAR, fill: Any = None, coefficients: Any = None
) -> Any:
    """Seen from aside: four startpoints (x, y) go to endpoints, or each pixel comes from where eight coefficients say.

    Raises ValueError for both or neither, and other numbers of either; RuntimeError for coefficients that boxes cannot follow.
    """


@functional(
    pil=pixels.elastic_image, image=pixels.elastic_image, mask=pixels.elastic_mask, bounding_boxes=points.elastic_bounding_boxes,
    keypoints=points.elastic_keypoints,
)  # fmt: skip
def elastic(inpt: Any, displacement: Tensor, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    """Each pixel from where it is plus displacement (1, height, width, 2), in halves of width and height. Raises TypeError, ValueError for another."""


elastic_transform = elastic


@functional(
    pil=first.pad, image=pixels.pad_image, mask=pixels.pad_mask, bounding_boxes=placing.pad_bounding_boxes, keypoints=placing.pad_keypoints
)
def pad(inpt: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """A border: `padding` is one number, (left and right, top and bottom) or (left, top, right, bottom); fill, a number or one for each channel.

    padding_mode: "constant"; and of images and masks "edge", "reflect" and "symmetric". Raises ValueError for others.
    """


@functional(
    pil=first.crop, image=first.crop, mask=pixels.crop_mask, bounding_boxes=placing.crop_bounding_boxes, keypoints=placing.crop_keypoints
)
def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part that begins at (top, left); what lies outside of an image is 0."""


@functional(
    pil=first.center_crop, image=first.center_crop, mask=pixels.center_crop_mask, bounding_boxes=placing.center_crop_bounding_boxes,
    keypoints=placing.center_crop_keypoints,
)  # fmt: skip
def center_crop(inpt: Any, output_size: Any) -> Any:
    """The middle, (height, width) or one number for both; what is smaller gets a border of 0."""


@functional(
    pil=pixels.resized_crop_pil, image=pixels.resized_crop_image, mask=pixels.resized_crop_mask, bounding_boxes=placing.resized_crop_bounding_boxes,
    keypoints=placing.resized_crop_keypoints,
)  # fmt: skip
def resized_crop(
    inpt: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = BILINEAR, antialias: bool | None = True
) -> Any:
    """crop, then resize."""


@functional(pil=first.five_crop, image=first.five_crop)
def five_crop(inpt: Any, size: Any) -> Any:
    """The four corners and the middle of an image, each of `size`, as a tuple. Raises ValueError for a size above the image's."""


@functional(pil=first.ten_crop, image=first.ten_crop)
def ten_crop(inpt: Any, size: Any, vertical_flip: bool = False) -> Any:
    """five_crop of an image, and of the image flipped."""
