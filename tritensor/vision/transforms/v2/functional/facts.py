"""Functionals that tell sizes: channels, heights and widths, frames."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.v2.functional.registry import functional


def _sizes(x: Tensor, least: int) -> list[int]:
    if x.ndim < least:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {x.ndim}")
    return [int(n) for n in x.shape]


def get_dimensions_image(image: Tensor) -> list[int]:
    """[channels, height, width] of (..., channels, height, width); (height, width) has one channel. Raises TypeError for fewer dimensions."""
    return ([1] * (image.ndim == 2) + _sizes(image, 2))[-3:]


def get_num_channels_image(image: Tensor) -> int:
    """The channels of an image. Raises TypeError for fewer than two dimensions."""
    return get_dimensions_image(image)[0]


def get_size_image(image: Tensor) -> list[int]:
    """[height, width] of an image, a video or a mask. Raises TypeError for fewer than two dimensions."""
    return _sizes(image, 2)[-2:]


def get_size_bounding_boxes(inpt: Any, canvas_size: tuple[int, int] | None = None) -> list[int]:
    """[height, width] of the canvas of boxes or points."""
    return list(canvas_size or inpt.canvas_size)


def get_num_frames_video(video: Tensor) -> int:
    """The frames of a video (..., time, channels, height, width)."""
    return int(video.shape[-4])


@functional(pil=first.get_dimensions, image=get_dimensions_image)
def get_dimensions(inpt: Any) -> Any:
    """[channels, height, width] of an image or a video."""


@functional(pil=first.get_image_num_channels, image=get_num_channels_image)
def get_num_channels(inpt: Any) -> Any:
    """The number of channels of an image or a video."""


get_image_num_channels = get_num_channels


@functional(
    pil=lambda image: [image.height, image.width], image=get_size_image, mask=get_size_image,
    bounding_boxes=get_size_bounding_boxes, keypoints=get_size_bounding_boxes,
)  # fmt: skip
def get_size(inpt: Any) -> Any:
    """[height, width] of what an input shows, or of what it lies in."""


@functional(video=get_num_frames_video)
def get_num_frames(inpt: Any) -> Any:
    """The number of frames of a video."""


def get_image_size(inpt: Any) -> list[int]:
    """The first version's get_image_size, [width, height]; PyTorch warns that it is deprecated."""
    warnings.warn("get_image_size is deprecated: use get_size, which gives [height, width]", stacklevel=2)
    return first.get_image_size(inpt)
