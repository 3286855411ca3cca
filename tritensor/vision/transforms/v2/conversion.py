"""Transforms between images and tensors, between types of values, and from TVTensors to plain ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.functional import is_pure_tensor


class ToTensor(Transform):
    """The first version's ToTensor, of PIL images and arrays; PyTorch warns that it is deprecated."""

    _transformed_types = (is_pil_image, np.ndarray)

    def __init__(self) -> None:
        warnings.warn("ToTensor() is deprecated: use Compose([ToImage(), ToDtype(torch.float32, scale=True)])", stacklevel=2)
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return first.to_tensor(inpt)


class PILToTensor(Transform):
    """PIL images as tensors (channels, h, w) of their own values: `functional.pil_to_tensor`."""

    _transformed_types = (is_pil_image,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return F.pil_to_tensor(inpt)


class ToImage(Transform):
    """PIL images, arrays and plain tensors as tv_tensors.Image: `functional.to_image`."""

    _transformed_types = (is_pure_tensor, is_pil_image, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Tensors and arrays as PIL images: `functional.to_pil_image`."""

    _transformed_types = (is_pure_tensor, tv.Image, np.ndarray)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """TVTensors as plain tensors, memory shared."""

    _transformed_types = (tv.TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return inpt.as_subclass(Tensor)  # type: ignore[no-any-return]


class ConvertImageDtype(Transform):
    """Images in another type, full brightness staying full: `functional.to_dtype`."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)


class ToDtype(Transform):
    """Images and videos in another type, with `scale` full brightness staying full; or each class in its own.

    Args:
        dtype: a type of images and videos, or a dict by class: {Image: float32, Mask: int64, "others": None}, None leaving things as they are.
        scale: of images and videos.

    Raises ValueError for what is neither, and for a class that the dict does not name.
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, dict | dtypes.DType):
            raise ArgumentError(f"ToDtype: dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        if isinstance(dtype, dict) and Tensor in dtype and (tv.Image in dtype or tv.Video in dtype):
            warnings.warn(
                "ToDtype: dtype has a type for Tensor, and for Image or Video: where a sample has these, plain tensors are not transformed",
                stacklevel=2,
            )
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        shows = is_pure_tensor(inpt) or isinstance(inpt, tv.Image | tv.Video)
        if not isinstance(self.dtype, dict):
            return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=self.scale) if shows else inpt
        kind = type(inpt) if type(inpt) in self.dtype else "others"
        if kind not in self.dtype:
            raise ArgumentError(
                f'ToDtype: No dtype was specified for type {type(inpt)}; "others": None in the dict leaves the rest as it is'
            )
        dtype = self.dtype[kind]
        if dtype is not None:
            return self._call_kernel(F.to_dtype, inpt, dtype=dtype, scale=self.scale)
        if self.scale and shows:
            warnings.warn(
                "ToDtype: scale was set to True but no dtype was specified for images or videos: no scaling will be done", stacklevel=2
            )
        return inpt
