"""Transforms of values: to mean 0 and deviation 1, blurred, with noise, by a linear map, by any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import color as first
from tritensor.vision.transforms.conversion import apply_map, check_map
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.arguments import as_numbers, as_size
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.functional import is_pure_tensor
from tritensor.vision.transforms.v2.samples import has_any


class Identity(Transform):
    """The sample as it is."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function of each leaf of a sample, or of those of the given types."""

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or (object,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", None)
        return ", ".join([*([name] if name else []), f"types={[t.__name__ for t in self.types]}"])


class _OfTensors(Transform):
    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_pil_image):
            raise TypeError(f"{type(self).__name__}() does not support PIL images; ToImage() first makes tensors of them")


class Normalize(_OfTensors):
    """(values - mean) / std, channel by channel: `functional.normalize`. Raises TypeError for PIL images."""

    _functional = staticmethod(F.normalize)
    _settings = ("mean", "std", "inplace")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = list(mean), list(std), inplace


class LinearTransformation(_OfTensors):
    """(pixels - mean_vector) @ transformation_matrix of a flattened image (..., channels, h, w), as whitening wants it.

    Raises ValueError for a matrix (n, n) and a vector (n,) that do not fit, TypeError for PIL images.
    """

    _transformed_types = (is_pure_tensor, tv.Image, tv.Video)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        check_map(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt.device.type != self.mean_vector.device.type:
            raise ArgumentError(f"LinearTransformation: the image is on {inpt.device}, the matrix on {self.mean_vector.device}")
        made = apply_map(inpt.as_subclass(Tensor), self.transformation_matrix, self.mean_vector)
        return made if is_pure_tensor(inpt) else tv.wrap(made, like=inpt)


class GaussianBlur(Transform):
    """Under a Gaussian whose deviation is drawn from `sigma`, (least, most) or one number: `functional.gaussian_blur`."""

    _functional = staticmethod(F.gaussian_blur)
    _settings = ("kernel_size",)
    get_params = staticmethod(first.GaussianBlur.get_params)

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = as_size("GaussianBlur", kernel_size)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):
            raise ArgumentError(f"GaussianBlur: Kernel size value should be an odd and positive number, got {kernel_size}")
        self.sigma = as_numbers(sigma, "sigma")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ArgumentError(f"GaussianBlur: sigma values should be positive and of the form (min, max). Got {self.sigma}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"sigma": [self.get_params(self.sigma[0], self.sigma[1])] * 2}


class GaussianNoise(Transform):
    """Values plus normal noise, on a scale of 0 to 1: `functional.gaussian_noise`."""

    _functional = staticmethod(F.gaussian_noise)
    _settings = ("mean", "sigma", "clip")

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip


class UniformTemporalSubsample(Transform):
    """num_samples frames of a video, at even distances: `functional.uniform_temporal_subsample`."""

    _transformed_types = (Tensor,)
    _functional = staticmethod(F.uniform_temporal_subsample)
    _settings = ("num_samples",)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples
