"""Transforms that resize, pad, crop or erase: the middle, anywhere, the corners, with a border."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import tensor
from tritensor.tensor.functions.creation.random import randn
from tritensor.vision.transforms import draws
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.arguments import check_ranges
from tritensor.vision.transforms.base import Change, Transform
from tritensor.vision.transforms.functional.images import as_pair
from tritensor.vision.transforms.interpolation import InterpolationMode, as_mode


class Resize(Transform):
    """An image of another size: `size` is (height, width), or the length of the shorter edge; see `functional.resize`.

    >>> tt.vision.transforms.Resize(24)(tt.rand(3, 32, 48)).shape  # the shorter edge
    tritensor.Size([3, 24, 36])
    """

    def __init__(
        self, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: int | None = None, antialias: bool | None = True
    ) -> None:
        super().__init__()
        if not isinstance(size, int | Sequence) or isinstance(size, str):
            raise TypeError(f"Resize: size is a {type(size).__name__}; give (height, width), or the length of the shorter edge")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ArgumentError(f"Resize: size {tuple(size)}; give (height, width), or the length of the shorter edge")
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = as_mode("Resize", interpolation)

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        settings = f"size={self.size}, interpolation={self.interpolation.value}, max_size={self.max_size}, antialias={self.antialias}"
        return f"{type(self).__name__}({settings})"


class _Crop(Change):
    _settings: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = as_pair(type(self).__name__, size)


class CenterCrop(_Crop):
    """The middle of an image, `size` being (height, width) or one number for both: `functional.center_crop`."""

    _change = staticmethod(F.center_crop)


class FiveCrop(_Crop):
    """The four corners and the middle, each of `size`, as a tuple: `functional.five_crop`."""

    _change = staticmethod(F.five_crop)


class TenCrop(_Crop):
    """The four corners and the middle, each of `size`, of the image and of the flipped image, as a tuple: `functional.ten_crop`."""

    _settings = ("size", "vertical_flip")
    _change = staticmethod(F.ten_crop)

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip


class Pad(Change):
    """An image with a border of `padding` pixels, one number, (x, y) or (left, top, right, bottom): `functional.pad`."""

    _settings = ("padding", "fill", "padding_mode")
    _change = staticmethod(F.pad)

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, int | float | tuple | list):
            raise TypeError(f"Pad: padding is a {type(padding).__name__}; give a number, or a sequence of 1, 2 or 4")
        if not isinstance(fill, int | float | tuple | list):
            raise TypeError(f"Pad: fill is a {type(fill).__name__}; give a number, or one for each channel")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ArgumentError(f"Pad: padding_mode {padding_mode!r}; give 'constant', 'edge', 'reflect' or 'symmetric'")
        if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
            raise ArgumentError(f"Pad: padding {tuple(padding)} has {len(padding)} numbers; give 1, 2 or 4")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode


class RandomCrop(Transform):
    """A part of `size` from anywhere in an image, after a border where `padding` says so, or `pad_if_needed` and the image is smaller.

    Raises ValueError for an image that is smaller.
    """

    _settings = ("size", "padding")

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size = as_pair("RandomCrop", size)
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a part, each position as likely as another."""
        _, h, w = F.get_dimensions(img)
        th, tw = output_size
        if h < th or w < tw:
            raise ArgumentError(f"RandomCrop: size {(th, tw)} is larger than the image, {(h, w)}; pad_if_needed=True adds a border")
        if (h, w) == (th, tw):  # draws nothing, as torchvision: the generator goes on from where it was
            return 0, 0, h, w
        return draws.integer(0, h - th + 1), draws.integer(0, w - tw + 1), th, tw

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, height, width = F.get_dimensions(img)
        if self.pad_if_needed and width < self.size[1]:
            # on both sides, as torchvision does: any part of it may be drawn
            img = F.pad(img, [self.size[1] - width, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and height < self.size[0]:
            img = F.pad(img, [0, self.size[0] - height], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(Transform):
    """A part of random area (a share in `scale`) and proportions (width / height in `ratio`), resized to `size` (Szegedy et al. 2015)."""

    def __init__(
        self, size: Any, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = as_pair("RandomResizedCrop", size)
        check_ranges("RandomResizedCrop", scale, ratio)
        self.scale, self.ratio, self.antialias = scale, ratio, antialias
        self.interpolation = as_mode("RandomResizedCrop", interpolation)

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a part: see draw_part."""
        _, height, width = F.get_dimensions(img)
        return draw_part(height, width, scale, ratio)

    def forward(self, img: Any) -> Any:
        return F.resized_crop(img, *self.get_params(img, self.scale, self.ratio), self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in r) for r in (self.scale, self.ratio))
        settings = f"size={self.size}, scale={scale}, ratio={ratio}, interpolation={self.interpolation.value}, antialias={self.antialias}"
        return f"{type(self).__name__}({settings})"


def draw_part(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
    """(top, left, height, width) of a part of random area and proportions; after ten that do not fit, the middle in the nearest proportions."""
    low, high = math.log(ratio[0]), math.log(ratio[1])
    # by logarithms, so that 3/4 is as likely as 4/3
    for _ in range(10):
        area, aspect = height * width * draws.uniform(scale[0], scale[1]), math.exp(draws.uniform(low, high))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draws.integer(0, height - h + 1), draws.integer(0, width - w + 1), h, w
    h, w = height, width  # the whole image, cut to the nearest proportions
    if width / height < min(ratio):
        h = round(width / min(ratio))
    elif width / height > max(ratio):
        w = round(height * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


class RandomErasing(Transform):
    """With probability p a rectangle of a tensor (..., channels, h, w) is overwritten (Zhong et al. 2017).

    Args:
        p: how likely.
        scale: the share of the area, (least, most).
        ratio: height / width, (least, most).
        value: what is written: a number, one for each channel, or "random" for normal noise.
        inplace: write into the tensor itself.

    Raises ValueError for shares and probabilities beyond 0 to 1, and another number of values than channels.
    """

    _settings = ("p", "scale", "ratio", "value", "inplace")

    def __init__(
        self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3), value: Any = 0, inplace: bool = False
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(value, int | float | str | tuple | list):
            raise TypeError(f"RandomErasing: value is a {type(value).__name__}; give a number, one for each channel, or 'random'")
        if isinstance(value, str) and value != "random":
            raise ArgumentError(f"RandomErasing: value {value!r}; give a number, one for each channel, or 'random'")
        check_ranges("RandomErasing", scale, ratio)
        if scale[0] < 0 or scale[1] > 1 or not 0 <= p <= 1:
            raise ArgumentError(f"RandomErasing: scale {tuple(scale)} and p {p}; both are shares, from 0 to 1")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: list[float] | None = None
    ) -> tuple[int, int, int, int, Tensor]:
        """(top, left, height, width, what to write); the image itself after ten rectangles that do not fit. None as `value` is noise."""
        channels, height, width = (int(n) for n in img.shape[-3:])
        if (drawn := draw_rectangle(height, width, scale, ratio)) is None:
            return 0, 0, height, width, img
        v = randn(channels, *drawn[2:], device=img.device) if value is None else tensor(value, device=img.device)[:, None, None]
        return *drawn, v

    def forward(self, img: Tensor) -> Tensor:
        if not draws.chance(self.p):
            return img
        values = self.value if isinstance(self.value, tuple | list) else (self.value,)
        value = None if self.value == "random" else [float(v) for v in values]
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ArgumentError(f"RandomErasing: value {self.value} has {len(value)} numbers and the image {img.shape[-3]} channels")
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, value), self.inplace)


def draw_rectangle(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int] | None:
    """(top, left, height, width) of a part of random area and proportions (height / width); None after ten that do not fit."""
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(10):
        area, aspect = height * width * draws.uniform(scale[0], scale[1]), math.exp(draws.uniform(low, high))
        h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if h < height and w < width:  # a rectangle as large as the image would erase all
            return draws.integer(0, height - h + 1), draws.integer(0, width - w + 1), h, w
    return None
