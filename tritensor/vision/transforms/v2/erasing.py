"""Transforms that take something away from an image: a rectangle, or what compression leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.functions.creation.constructors import tensor
from tritensor.tensor.functions.creation.random import randn
from tritensor.vision.transforms import cropping as first
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.arguments import check_sequence
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.base import RandomApplyTransform, Transform
from tritensor.vision.transforms.v2.cropping import warn_of_passing
from tritensor.vision.transforms.v2.samples import query_chw


class RandomErasing(RandomApplyTransform):
    """With probability p a rectangle of an image or a video is overwritten (Zhong et al. 2017).

    Args:
        p: how likely.
        scale: the share of the area, (least, most).
        ratio: height / width, (least, most).
        value: what is written: a number, one for each channel, or "random" for normal noise.
        inplace: write into the tensor itself.

    Raises ValueError for shares and probabilities beyond 0 to 1, and another number of values than channels.
    """

    _functional = staticmethod(F.erase)
    _settings = ("inplace",)
    get_params = staticmethod(first.RandomErasing.get_params)

    def __init__(
        self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3), value: Any = 0.0, inplace: bool = False
    ) -> None:  # fmt: skip
        super().__init__(p)
        checked = first.RandomErasing(p, scale, ratio, value, inplace)
        self.scale, self.ratio = checked.scale, checked.ratio
        many = value if isinstance(value, tuple | list) else [value]
        self.value = None if isinstance(value, str) else [float(v) for v in many]
        self.inplace = inplace

    def _call_kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_passing(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels, height, width = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ArgumentError(
                f"RandomErasing: If value is a sequence, it should have either a single value or {channels} (number of inpt channels)"
            )
        if (drawn := first.draw_rectangle(height, width, self.scale, self.ratio)) is None:
            return {"v": None}
        v = randn(channels, *drawn[2:]) if self.value is None else tensor(self.value)[:, None, None]
        return {**dict(zip("ijhw", drawn, strict=True)), "v": v}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt if params["v"] is None else super().transform(inpt, params)


class JPEG(Transform):
    """Compressed with a quality of 1 to 100, one number or (least, most): `functional.jpeg`. Raises ValueError for others."""

    _functional = staticmethod(F.jpeg)

    def __init__(self, quality: Any) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("JPEG: quality can't be bool")
        self.quality = [quality, quality] if isinstance(quality, int) else check_sequence("JPEG", "quality", quality)
        low, high = self.quality
        if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= 100):
            raise ArgumentError(f"JPEG: quality must be an integer from 1 to 100, got {quality}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": draws.integer(self.quality[0], self.quality[1] + 1)}
