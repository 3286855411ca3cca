"""Padding: a constant, zeros, the edge mirrored or repeated, or the other side, around the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Sides = int | Sequence[int]


class _Pad(Module):
    """(left, right) of the last dimension, then of the one before it; one number for all sides."""

    axes = 1
    mode = "constant"

    def __init__(self, padding: Sides) -> None:
        super().__init__()
        # always all sides: PyTorch's attribute and repr are that tuple
        sides = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(sides) != 2 * self.axes:
            raise ValueError(f"{type(self).__name__}: padding is {padding!r}; give one number, or {2 * self.axes}: two for each dimension")
        self.padding = sides

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _Constant(_Pad):
    def __init__(self, padding: Sides, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """(..., n) surrounded with `value`."""


class ConstantPad2d(_Constant):
    """(..., h, w) surrounded with `value`."""

    axes = 2


class ConstantPad3d(_Constant):
    """(..., d, h, w) surrounded with `value`."""

    axes = 3


class _Zeros(_Constant):
    """The constant 0, which the classes' constructors and reprs leave out."""

    def __init__(self, padding: Sides) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Zeros, ConstantPad1d):
    """(..., n) surrounded with 0."""


class ZeroPad2d(_Zeros, ConstantPad2d):
    """(..., h, w) surrounded with 0."""


class ZeroPad3d(_Zeros, ConstantPad3d):
    """(..., d, h, w) surrounded with 0."""


class ReflectionPad1d(_Pad):
    """(..., channels, n), mirrored at the edge element."""

    mode = "reflect"


# of the one, as circular ones are: torch_compat gives the first as the base that PyTorch has for all three
class ReflectionPad2d(ReflectionPad1d):
    """(..., channels, h, w), mirrored at the edge elements."""

    axes = 2


class ReflectionPad3d(ReflectionPad1d):
    """(..., channels, d, h, w), mirrored at the edge elements."""

    axes = 3


class ReplicationPad1d(_Pad):
    """(..., channels, n), the edge element repeated."""

    mode = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """(..., channels, h, w), the edge elements repeated."""

    axes = 2


class ReplicationPad3d(ReplicationPad1d):
    """(..., channels, d, h, w), the edge elements repeated."""

    axes = 3


class CircularPad1d(_Pad):
    """(..., channels, n), going on at the other side."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        # a plain pad would take the channels of a smaller input for an axis, and wrap them
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                f"{type(self).__name__}: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, ...) with {self.axes + 2}, "
                f"or (channels, ...) with {self.axes + 1}"
            )
        return super().forward(input)


class CircularPad2d(CircularPad1d):
    """(..., channels, h, w), going on at the other side."""

    axes = 2


class CircularPad3d(CircularPad1d):
    """(..., channels, d, h, w), going on at the other side."""

    axes = 3
