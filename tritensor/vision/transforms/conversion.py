"""Transforms between images and tensors, between types of values, to mean 0 and deviation 1; a linear map of all pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError, DeviceError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.base import Transform


class ToTensor:
    """A PIL image or an array (h, w, channels) as a tensor (channels, h, w) of floats from 0 to 1: `functional.to_tensor`.

    >>> tt.vision.transforms.ToTensor()(tt.full((2, 2, 3), 51, dtype=tt.uint8).numpy()).shape
    tritensor.Size([3, 2, 2])
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """A PIL image as a tensor (channels, h, w) of its own type and values: `functional.pil_to_tensor`."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """A tensor (channels, h, w) or an array (h, w, channels) as a PIL image: `functional.to_pil_image`."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Transform):
    """A tensor in another type, full brightness staying full: `functional.convert_image_dtype`."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Transform):
    """(tensor - mean) / std, channel by channel: `functional.normalize`.

    >>> tt.vision.transforms.Normalize([0.5], [0.25])(tt.tensor([[[0.5, 1.0]]]))
    tensor([[[0., 2.]]])
    """

    _settings = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class LinearTransformation(Transform):
    """(pixels - mean_vector) @ transformation_matrix of a flattened image (..., channels, h, w), as whitening wants it.

    Raises ValueError for a matrix (n, n) and a vector (n,) that do not fit, TypeError for types or devices that differ.
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        check_map(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, tensor: Tensor) -> Tensor:
        return apply_map(tensor, self.transformation_matrix, self.mean_vector)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, mean_vector={self.mean_vector.tolist()})"
        )


def check_map(m: Tensor, v: Tensor) -> None:
    """Raise ShapeError for a matrix (n, n) and a vector (n,) that do not fit, ValueError for types or devices that differ."""
    if m.ndim != 2 or m.shape[0] != m.shape[1] or tuple(v.shape) != (m.shape[0],):
        raise ShapeError(
            f"LinearTransformation: transformation_matrix {tuple(m.shape)}, mean_vector {tuple(v.shape)}; give (n, n) and (n,)"
        )
    if m.device != v.device or m.dtype != v.dtype:  # found when it is built, not at the first image
        raise ArgumentError(f"LinearTransformation: transformation_matrix is {m.dtype} on {m.device}, mean_vector {v.dtype} on {v.device}")


def apply_map(tensor: Tensor, m: Tensor, v: Tensor) -> Tensor:
    """(pixels - v) @ m of flattened images. Raises ShapeError for another number of values, DeviceError for another device."""
    n = tensor.shape[-3] * tensor.shape[-2] * tensor.shape[-1]  # leading dimensions are images
    if n != v.shape[0]:
        raise ShapeError(f"LinearTransformation: {tuple(tensor.shape)} has {n} values an image and the matrix takes {v.shape[0]}")
    # the matrix is not moved for each image: that would hide a copy in a training loop
    if tensor.device.type != v.device.type:
        raise DeviceError(f"LinearTransformation: the image is on {tensor.device}, the matrix on {v.device}")
    flat = tensor.reshape(-1, n) - v
    return (flat @ m.to(flat.dtype)).reshape(tensor.shape)
