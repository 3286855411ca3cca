"""BoundingBoxes, and the forms that they are given in."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.vision.tv_tensors.base import TVTensor

CLAMPING_MODES = (None, "soft", "hard")


class BoundingBoxFormat(Enum):
    """Forms of a box: two corners, a corner or the centre with width and height; and turned ones, those two with an angle in degrees, or four corners."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


def as_format(format: BoundingBoxFormat | str) -> BoundingBoxFormat:
    """A form of its name in any case. Raises KeyError for another name."""
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Whether boxes of a form can be turned. Raises ValueError for what is no form."""
    if not isinstance(format, BoundingBoxFormat | str):
        raise ArgumentError(f"is_rotated_bounding_format: format should be str or BoundingBoxFormat, got {type(format)}")
    return (format if isinstance(format, str) else format.value) in ("XYWHR", "CXCYWHR", "XYXYXYXY")


class BoundingBoxes(TVTensor):
    """Boxes of one image or video, (n, 4), or (n, 5) and (n, 8) where they are turned; one box (4,) becomes (1, 4).

    Args:
        data: anything that as_tensor() takes; floats for turned boxes.
        format: a BoundingBoxFormat or its name.
        canvas_size: (height, width) of the image.
        clamping_mode: what transforms do with a box that reaches over the edge: None nothing; "soft" and "hard" cut it, a turned one so that
            it covers what was inside, or so that it lies inside.

    Raises:
        ValueError: other dimensions, another mode, integers for turned boxes.
        KeyError: another format.
    """

    _facts = ("format", "canvas_size", "clamping_mode")

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    def __new__(
        cls, data: Any, *, format: BoundingBoxFormat | str, canvas_size: tuple[int, int], clamping_mode: str | None = "soft", dtype: Any = None,
        device: Any = None, requires_grad: bool | None = None,
    ) -> Any:  # fmt: skip
        values = cls._to_tensor(data, dtype, device, requires_grad)
        if is_rotated_bounding_format(format) and not values.is_floating_point():
            raise ArgumentError(f"BoundingBoxes: Rotated bounding boxes should be floating point tensors, got {values.dtype}")
        return cls.wrap(values, None, format=format, canvas_size=canvas_size, clamping_mode=clamping_mode)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """A tensor (n, 4), ... or of one box as boxes, with the facts of `like`, but for those that kwargs give. Raises as the class does."""
        if tensor.ndim not in (1, 2):
            raise ShapeError(f"BoundingBoxes: Expected a 1D or 2D tensor, got {tensor.ndim}D; give (n, 4)")
        if "format" in kwargs:
            kwargs["format"] = as_format(kwargs["format"])
        if kwargs.get("clamping_mode") not in CLAMPING_MODES:
            raise ArgumentError(f"BoundingBoxes: clamping_mode must be None, hard or soft, got {kwargs['clamping_mode']}")
        return super().wrap(tensor.unsqueeze(0) if tensor.ndim == 1 else tensor, like, **kwargs)
