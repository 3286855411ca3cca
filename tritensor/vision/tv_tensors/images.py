"""Image, Video and Mask, the tensors of pixels."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.vision.pillow import is_pil_image, tensor_from_image
from tritensor.vision.tv_tensors.base import TVTensor


class Image(TVTensor):
    """An image (..., channels, height, width), of anything that as_tensor() takes, or of a PIL image; (height, width) gets a dimension of one channel.

    Raises ValueError for fewer dimensions.
    """

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        values = cls._to_tensor(tensor_from_image(data) if is_pil_image(data) else data, dtype, device, requires_grad)
        if values.ndim < 2:
            raise ShapeError(f"Image: Tensor must be 2D or higher, got {values.ndim}D tensor; give (..., channels, height, width)")
        return (values.unsqueeze(0) if values.ndim == 2 else values).as_subclass(cls)


class Video(TVTensor):
    """Frames (..., time, channels, height, width). Raises ValueError for fewer dimensions."""

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        values = cls._to_tensor(data, dtype, device, requires_grad)
        if values.ndim < 4:
            raise ShapeError(f"Video: data {tuple(values.shape)} has {values.ndim} dimensions; give (..., time, channels, height, width)")
        return values.as_subclass(cls)


class Mask(TVTensor):
    """Masks (..., height, width): classes of pixels, or one object each; of a PIL image, too."""

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        return cls._to_tensor(tensor_from_image(data) if is_pil_image(data) else data, dtype, device, requires_grad).as_subclass(cls)
