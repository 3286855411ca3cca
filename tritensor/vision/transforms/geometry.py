"""Transforms of positions, drawn at random: flips, rotations, affine maps, perspectives, elastic deformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import rand
from tritensor.tensor.functions.shaping.joining import cat
from tritensor.vision.transforms import draws
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.arguments import adapt_fill, as_degrees, check_fill, check_sequence
from tritensor.vision.transforms.base import RandomChange, Transform
from tritensor.vision.transforms.interpolation import InterpolationMode, as_mode


class RandomHorizontalFlip(RandomChange):
    """Left and right exchanged with probability p."""

    _change = staticmethod(F.hflip)


class RandomVerticalFlip(RandomChange):
    """Top and bottom exchanged with probability p."""

    _change = staticmethod(F.vflip)


class RandomRotation(Transform):
    """An image turned by an angle of `degrees`, (least, most) or d for (-d, d): `functional.rotate`."""

    def __init__(
        self, degrees: Any, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False, center: Sequence[float] | None = None, fill: Any = 0
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = as_degrees("RandomRotation", "degrees", degrees)
        self.center = None if center is None else check_sequence("RandomRotation", "center", center)
        self.interpolation = as_mode("RandomRotation", interpolation)
        self.expand, self.fill = expand, check_fill("RandomRotation", fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """The angle."""
        return draws.uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, adapt_fill(self.fill, img))

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        settings = f"degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}{center}, fill={self.fill}"
        return f"{type(self).__name__}({settings})"


class RandomAffine(Transform):
    """An image turned, moved, scaled and sheared at random: `functional.affine`.

    Args:
        degrees: (least, most), or d for (-d, d).
        translate: how far at most, as shares of (width, height).
        scale: (least, most).
        shear: degrees along x, (least, most) or s for (-s, s), or four, the last two along y.
        interpolation, fill, center: of `functional.affine`.
    """

    def __init__(
        self, degrees: Any, translate: Sequence[float] | None = None, scale: Sequence[float] | None = None, shear: Any = None,
        interpolation: Any = InterpolationMode.NEAREST, fill: Any = 0, center: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = as_degrees("RandomAffine", "degrees", degrees)
        if translate is not None and not all(0.0 <= t <= 1.0 for t in check_sequence("RandomAffine", "translate", translate)):
            raise ArgumentError(f"RandomAffine: translate {tuple(translate)}; give shares of the width and the height, from 0 to 1")
        if scale is not None and min(check_sequence("RandomAffine", "scale", scale)) <= 0:
            raise ArgumentError(f"RandomAffine: scale {tuple(scale)}; give numbers above 0")
        self.translate, self.scale = translate, scale
        self.shear = None if shear is None else as_degrees("RandomAffine", "shear", shear, (2, 4))
        self.interpolation, self.fill = as_mode("RandomAffine", interpolation), check_fill("RandomAffine", fill)
        self.center = None if center is None else check_sequence("RandomAffine", "center", center)

    @staticmethod
    def get_params(
        degrees: Sequence[float], translate: Sequence[float] | None, scale_ranges: Sequence[float] | None, shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:  # fmt: skip
        """(angle, (x, y) in pixels, scale, (shear along x, along y)); img_size is (width, height)."""
        angle = draws.uniform(degrees[0], degrees[1])
        moved = (0, 0)
        if translate is not None:
            far = [share * size for share, size in zip(translate, img_size, strict=True)]
            # whole pixels: an image that is only moved stays sharp
            moved = (round(draws.uniform(-far[0], far[0])), round(draws.uniform(-far[1], far[1])))
        scale = 1.0 if scale_ranges is None else draws.uniform(scale_ranges[0], scale_ranges[1])
        shear_x = 0.0 if shears is None else draws.uniform(shears[0], shears[1])
        shear_y = draws.uniform(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, moved, scale, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))
        return F.affine(img, *drawn, interpolation=self.interpolation, fill=adapt_fill(self.fill, img), center=self.center)

    def __repr__(self) -> str:
        settings = [f"degrees={self.degrees}"]
        settings += [f"{n}={getattr(self, n)}" for n in ("translate", "scale", "shear") if getattr(self, n) is not None]
        settings += [f"interpolation={self.interpolation.value}"] if self.interpolation is not InterpolationMode.NEAREST else []
        settings += [f"fill={self.fill}"] if self.fill != 0 else []
        settings += [f"center={self.center}"] if self.center is not None else []
        return f"{type(self).__name__}({', '.join(settings)})"


class RandomPerspective(RandomChange):
    """With probability p an image seen from aside, its corners moved inwards by up to half of `distortion_scale`: `functional.perspective`."""

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = 0
    ) -> None:
        super().__init__(p)
        self.distortion_scale = distortion_scale
        self.interpolation, self.fill = as_mode("RandomPerspective", interpolation), check_fill("RandomPerspective", fill)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """(the corners (x, y), clockwise from the top left, where they go)."""
        across, down = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))

        def point(right: bool, bottom: bool) -> list[int]:
            x = draws.integer(width - across - 1, width) if right else draws.integer(0, across + 1)
            y = draws.integer(height - down - 1, height) if bottom else draws.integer(0, down + 1)
            return [x, y]

        corners = [(False, False), (True, False), (True, True), (False, True)]
        starts = [[(width - 1) * right, (height - 1) * bottom] for right, bottom in corners]
        return starts, [point(right, bottom) for right, bottom in corners]

    def _change(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        startpoints, endpoints = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, startpoints, endpoints, self.interpolation, adapt_fill(self.fill, img))


class ElasticTransform(Transform):
    """An image whose pixels are moved by smooth random fields, as if seen through water (Simard et al. 2003): `functional.elastic_transform`.

    Args:
        alpha: how far, in pixels: one number, or (x, y).
        sigma: how smooth, the deviation of the Gaussian: one number, or (x, y).
        interpolation, fill: as in `functional.rotate`.
    """

    _settings = ("alpha", "sigma", "interpolation", "fill")

    def __init__(self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = 0) -> None:
        super().__init__()
        self.alpha, self.sigma = _as_pair("alpha", alpha), _as_pair("sigma", sigma)
        self.interpolation = as_mode("ElasticTransform", interpolation)
        fill = check_fill("ElasticTransform", fill)
        self.fill = [float(fill)] if isinstance(fill, int | float) else [float(f) for f in fill]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """The displacement (1, height, width, 2) of an image of `size` (height, width)."""
        parts = []
        for far, smooth, length in zip(alpha, sigma, (size[1], size[0]), strict=True):
            field = rand(1, 1, *size) * 2 - 1  # in -1 to 1; blurred, so that neighbours move alike
            if smooth > 0:  # no blur asked for: the noise itself
                kernel = int(8 * smooth + 1) | 1  # odd, four deviations to each side
                field = F.gaussian_blur(field, [kernel, kernel], [smooth, smooth])
            parts.append(field * far / length)
        return cat(parts, 1).permute(0, 2, 3, 1)

    def forward(self, tensor: Any) -> Any:
        _, height, width = F.get_dimensions(tensor)
        return F.elastic_transform(tensor, self.get_params(self.alpha, self.sigma, [height, width]), self.interpolation, self.fill)


def _as_pair(what: str, given: Any) -> list[float]:
    if isinstance(given, int | float):
        return [float(given)] * 2
    return [float(v) for v in check_sequence("ElasticTransform", what, given)]
