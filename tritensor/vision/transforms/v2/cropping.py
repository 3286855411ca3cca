"""Transforms that cut or pad: the middle, anywhere, the corners, around boxes, with a border."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.ops.boxes import box_iou
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import cropping as first
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.arguments import check_ranges, check_sequence
from tritensor.vision.transforms.functional.geometry import as_sides
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.arguments import as_fills, as_size, check_padding, fill_for
from tritensor.vision.transforms.v2.base import RandomApplyTransform, Transform
from tritensor.vision.transforms.v2.functional import is_pure_tensor
from tritensor.vision.transforms.v2.samples import get_bounding_boxes, has_all, has_any, query_size


class CenterCrop(Transform):
    """The middle, `size` being (height, width) or one number for both: `functional.center_crop`."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = as_size("CenterCrop", size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.center_crop, inpt, output_size=self.size)


class RandomResizedCrop(Transform):
    """A part of random area (a share in `scale`) and proportions (width / height in `ratio`), resized to `size` (Szegedy et al. 2015)."""

    _functional = staticmethod(F.resized_crop)
    _settings = ("size", "interpolation", "antialias")
    get_params = staticmethod(first.RandomResizedCrop.get_params)

    def __init__(
        self, size: Any, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = as_size("RandomResizedCrop", size)
        check_ranges("RandomResizedCrop", scale, ratio)
        self.scale, self.ratio, self.interpolation, self.antialias = scale, ratio, interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        drawn = first.draw_part(*query_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), drawn, strict=True))


class _Crops(Transform):
    """Base of those that give several crops of an image."""

    _settings: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = as_size(type(self).__name__, size)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, tv.BoundingBoxes, tv.Mask):
            raise TypeError(f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()")

    def _call_kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_passing(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)


def warn_of_passing(transform: Transform, inpt: Any) -> None:
    """Warn, as torchvision does, of an input that stays although the image is changed."""
    if isinstance(inpt, tv.BoundingBoxes | tv.KeyPoints | tv.Mask):
        name = type(transform).__name__
        warnings.warn(f"{name}() is currently passing through inputs of type tv_tensors.{type(inpt).__name__}", stacklevel=4)


class FiveCrop(_Crops):
    """The four corners and the middle of an image, each of `size`, as a tuple: `functional.five_crop`. Raises TypeError for boxes and masks."""

    _functional = staticmethod(F.five_crop)


class TenCrop(_Crops):
    """FiveCrop of an image and of the flipped image, as a tuple: `functional.ten_crop`. Raises TypeError for boxes and masks."""

    _functional = staticmethod(F.ten_crop)
    _settings = ("size", "vertical_flip")

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip


class Pad(Transform):
    """A border of `padding` pixels, one number, (x, y) or (left, top, right, bottom): `functional.pad`. fill: also by class, {Image: 0, "others": 1}."""

    _functional = staticmethod(F.pad)
    _settings = ("padding", "fill", "padding_mode")

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        check_padding(padding, padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill, self._fill = fill, as_fills(fill)
        self.padding_mode = padding_mode


class RandomZoomOut(RandomApplyTransform):
    """With probability p the image somewhere on a canvas that is larger by a factor of side_range. Raises ValueError for a range below 1."""

    _functional = staticmethod(F.pad)
    _settings = ("fill",)

    def __init__(self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self.fill, self._fill = fill, as_fills(fill)
        self.side_range = check_sequence("RandomZoomOut", "side_range", side_range)
        if not 1.0 <= side_range[0] <= side_range[1]:
            raise ArgumentError(f"RandomZoomOut: Invalid side range provided {side_range}; give (least, most), 1 or more")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        r = draws.uniform(self.side_range[0], self.side_range[1])
        wider, higher = int(width * r) - width, int(height * r) - height
        left, top = int(wider * draws.uniform(0, 1)), int(higher * draws.uniform(0, 1))
        return {"padding": [left, top, wider - left, higher - top]}


class RandomCrop(Transform):
    """A part of `size` from anywhere, after a border where `padding` says so, or `pad_if_needed` and the image is smaller.

    Raises ValueError for an image that is smaller.
    """

    get_params = staticmethod(first.RandomCrop.get_params)

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size = as_size("RandomCrop", size)
        if pad_if_needed or padding is not None:
            check_padding(0 if padding is None else padding, padding_mode)
        left, top, right, bottom = as_sides(padding or 0)
        self.padding = [left, right, top, bottom] if padding else None  # in torchvision's order
        self.pad_if_needed = pad_if_needed
        self.fill, self._fill = fill, as_fills(fill)
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        if self.pad_if_needed:  # on both sides, as torchvision does: any part of it may be drawn
            more = max(self.size[0] - (height + top + bottom), 0), max(self.size[1] - (width + left + right), 0)
            top, bottom, left, right = top + more[0], bottom + more[0], left + more[1], right + more[1]
        height, width = height + top + bottom, width + left + right
        if height < self.size[0] or width < self.size[1]:
            padded = "padded " if self.padding is not None else ""
            raise ArgumentError(f"RandomCrop: Required crop size {self.size} is larger than {padded}input image size {(height, width)}")
        at = [draws.integer(0, n - part + 1) if n > part else 0 for n, part in zip((height, width), self.size, strict=True)]
        part = {"top": at[0], "left": at[1], "height": self.size[0], "width": self.size[1]}
        padding = [left, top, right, bottom]
        return {"needs_crop": (height, width) != tuple(self.size), "needs_pad": any(padding), "padding": padding, **part}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["needs_pad"]:
            inpt = self._call_kernel(
                F.pad, inpt, padding=params["padding"], fill=fill_for(self._fill, inpt), padding_mode=self.padding_mode
            )
        if params["needs_crop"]:
            inpt = self._call_kernel(F.crop, inpt, **{name: params[name] for name in ("top", "left", "height", "width")})
        return inpt


class RandomIoUCrop(Transform):
    """A part that keeps enough of a box, as SSD is trained (Liu et al. 2016): the least overlap is drawn first, then parts, until one fits.

    Boxes whose middle is outside become empty: SanitizeBoundingBoxes takes them out.

    Args:
        min_scale, max_scale: of the part's height and width, as shares.
        min_aspect_ratio, max_aspect_ratio: of its width / height.
        sampler_options: least overlaps; 1 or more leaves the sample as it is.
        trials: how many parts are drawn before another overlap is.

    Raises TypeError for a sample without an image or boxes.
    """

    def __init__(
        self, min_scale: float = 0.3, max_scale: float = 1.0, min_aspect_ratio: float = 0.5, max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None, trials: int = 40,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if not (has_all(flat_inputs, tv.BoundingBoxes) and has_any(flat_inputs, is_pil_image, tv.Image, is_pure_tensor)):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images and bounding boxes. Sample can also contain masks."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size, boxes = query_size(flat_inputs), get_bounding_boxes(flat_inputs)
        corners = F.convert_bounding_box_format(boxes.as_subclass(Tensor), boxes.format, "XYXY")
        while True:
            least = self.options[draws.integer(0, len(self.options))]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                if found := self._draw_part(size, corners, least):
                    return found

    def _draw_part(self, size: tuple[int, int], corners: Tensor, least: float) -> dict[str, Any]:
        """A part of the image, and which boxes' middles are in it; nothing where it does not fit."""
        width, height = (int(n * draws.uniform(self.min_scale, self.max_scale)) for n in size[::-1])
        if 0 in (width, height) or not self.min_aspect_ratio <= width / height <= self.max_aspect_ratio:
            return {}
        left, top = int((size[1] - width) * draws.uniform(0, 1)), int((size[0] - height) * draws.uniform(0, 1))
        x, y = 0.5 * (corners[..., 0] + corners[..., 2]), 0.5 * (corners[..., 1] + corners[..., 3])
        inside = (left < x) & (x < left + width) & (top < y) & (y < top + height)
        if not bool(inside.any()):
            return {}
        part = corners.new_tensor([[left, top, left + width, top + height]])
        if float(box_iou(corners[inside], part).max()) < least:
            return {}
        return {"top": top, "left": left, "height": height, "width": width, "is_within_crop_area": inside}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        output = self._call_kernel(F.crop, inpt, **{name: params[name] for name in ("top", "left", "height", "width")})
        if isinstance(output, tv.BoundingBoxes):
            output[~params["is_within_crop_area"]] = 0
        return output
