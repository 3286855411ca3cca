"""Transforms of positions, drawn at random: flips, rotations, affine maps, perspectives, elastic deformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.vision.transforms import geometry as first
from tritensor.vision.transforms.arguments import as_degrees, check_sequence
from tritensor.vision.transforms.functional.warping import perspective_coefficients
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.arguments import as_fills, as_numbers, fill_for
from tritensor.vision.transforms.v2.base import RandomApplyTransform, Transform
from tritensor.vision.transforms.v2.samples import query_size


class RandomHorizontalFlip(RandomApplyTransform):
    """Left and right exchanged with probability p."""

    _functional = staticmethod(F.horizontal_flip)


class RandomVerticalFlip(RandomApplyTransform):
    """Top and bottom exchanged with probability p."""

    _functional = staticmethod(F.vertical_flip)


class RandomRotation(Transform):
    """Turned by an angle of `degrees`, (least, most) or d for (-d, d): `functional.rotate`. fill: also by class, {Image: 0, "others": None}."""

    _functional = staticmethod(F.rotate)
    _settings = ("interpolation", "expand", "center", "fill")
    get_params = staticmethod(first.RandomRotation.get_params)

    def __init__(
        self, degrees: Any, interpolation: Any = "nearest", expand: bool = False, center: Sequence[float] | None = None, fill: Any = 0
    ) -> None:
        super().__init__()
        self.degrees = as_degrees("RandomRotation", "degrees", degrees)
        self.interpolation, self.expand = interpolation, expand
        self.fill, self._fill = fill, as_fills(fill)
        self.center = None if center is None else check_sequence("RandomRotation", "center", center)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": self.get_params(self.degrees)}


class RandomAffine(Transform):
    """Turned, moved, scaled and sheared at random: `functional.affine`.

    Args:
        degrees: (least, most), or d for (-d, d).
        translate: how far at most, as shares of (width, height).
        scale: (least, most).
        shear: degrees along x, (least, most) or s for (-s, s), or four, the last two along y.
        interpolation, fill, center: of `functional.affine`; a fill also by class.

    Raises ValueError for shares beyond 0 to 1, scales that are not positive.
    """

    _functional = staticmethod(F.affine)
    _settings = ("interpolation", "fill", "center")
    get_params = staticmethod(first.RandomAffine.get_params)

    def __init__(
        self, degrees: Any, translate: Sequence[float] | None = None, scale: Sequence[float] | None = None, shear: Any = None,
        interpolation: Any = "nearest", fill: Any = 0, center: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        checked = first.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees, self.translate, self.scale, self.shear = checked.degrees, translate, scale, checked.shear
        self.interpolation = interpolation
        self.fill, self._fill = fill, as_fills(fill)
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))


class RandomPerspective(RandomApplyTransform):
    """With probability p seen from aside, the corners moved inwards by up to half of `distortion_scale`: `functional.perspective`."""

    get_params = staticmethod(first.RandomPerspective.get_params)

    def __init__(self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = "bilinear", fill: Any = 0) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ArgumentError(f"RandomPerspective: Argument distortion_scale value should be between 0 and 1, got {distortion_scale}")
        self.distortion_scale, self.interpolation = distortion_scale, interpolation
        self.fill, self._fill = fill, as_fills(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        return {"coefficients": perspective_coefficients(*self.get_params(width, height, self.distortion_scale))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.perspective, inpt, None, None, self.interpolation, fill_for(self._fill, inpt), **params)


class ElasticTransform(Transform):
    """Bent by a smooth field of random displacements: `functional.elastic`.

    Args:
        alpha: how strong: one number, or (x, y).
        sigma: how smooth, the deviation of the Gaussian: one number, or (x, y).
        interpolation, fill: as in `functional.elastic`; a fill also by class.
    """

    _functional = staticmethod(F.elastic)
    _settings = ("interpolation", "fill")
    get_params = staticmethod(first.ElasticTransform.get_params)

    def __init__(self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = "bilinear", fill: Any = 0) -> None:
        super().__init__()
        self.alpha, self.sigma = as_numbers(alpha, "alpha"), as_numbers(sigma, "sigma")
        self.interpolation = interpolation
        self.fill, self._fill = fill, as_fills(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"displacement": self.get_params(self.alpha, self.sigma, list(query_size(flat_inputs)))}
