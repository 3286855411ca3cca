"""Functionals between images and tensors, and between types of values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.functional import convert_image_dtype as convert_image_dtype
from tritensor.vision.transforms.functional import pil_to_tensor as pil_to_tensor
from tritensor.vision.transforms.functional import to_pil_image as to_pil_image
from tritensor.vision.transforms.v2.functional.registry import functional


def to_image(inpt: Any) -> Any:
    """A PIL image, a tensor, or an array (h, w) or (h, w, channels) as a tv_tensors.Image of its own values. Raises TypeError for anything else."""
    if isinstance(inpt, np.ndarray):
        return tv.Image(Tensor.wrap(np.ascontiguousarray(np.atleast_3d(inpt).transpose(2, 0, 1))))
    if not (isinstance(inpt, Tensor) or is_pil_image(inpt)):
        raise TypeError(f"to_image: inpt is a {type(inpt).__name__}; give a tensor, a numpy array or a PIL image")
    return tv.Image(inpt)


def to_tensor(inpt: Any) -> Tensor:
    """The first version's to_tensor; PyTorch warns that it is deprecated."""
    warnings.warn("to_tensor is deprecated: use to_image, then to_dtype(..., torch.float32, scale=True)", stacklevel=2)
    return first.to_tensor(inpt)


def to_dtype_image(image: Tensor, dtype: Any = dtypes.float32, scale: bool = False) -> Tensor:
    """An image in another type; `scale` keeps full brightness full, else values are converted as they are."""
    if image.dtype == dtype:
        return image
    return convert_image_dtype(image, dtype) if scale else image.to(dtype)


def _to_dtype_as_is(inpt: Tensor, dtype: Any = dtypes.float32) -> Tensor:
    return inpt.to(dtype)  # classes and positions have no brightness


@functional(image=to_dtype_image, mask=_to_dtype_as_is, bounding_boxes=_to_dtype_as_is, keypoints=_to_dtype_as_is)
def to_dtype(inpt: Any, dtype: Any = dtypes.float32, scale: bool = False) -> Any:
    """An input in another type; with `scale` an image's or a video's full brightness stays full."""
