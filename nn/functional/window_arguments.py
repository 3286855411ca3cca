"""Arguments of functions that slide a window over an image: sizes for each axis, inputs without a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import channels_last, channels_last_3d, is_channels_last
from tritensor.ops.array import is_contiguous
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor

Sizes = (
    int | Sequence[int]
)  # explain_error reads annotations as text and passes over this one: functions that rely on it write the types out
AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}
_COUNTS = {1: "one integer", 2: "one integer, or two for height and width", 3: "one integer, or three for depth, height and width"}


def to_axes(name: str, what: str, value: Any, axes: int) -> tuple[int, ...]:
    """A number for each of `axes` axes, from one for all or from as many."""
    value = one_integer(value)  # numpy's integers and tensors of one stand for numbers
    if isinstance(value, int):
        return (value,) * axes
    found = tuple(one_integer(v) for v in value)
    if len(found) == 1:  # PyTorch spreads (3,) as it does 3
        found *= axes
    if len(found) != axes or not all(isinstance(v, int) for v in found):
        raise ShapeError(f"{name}: {what} is {value!r}; give {_COUNTS[axes]}")
    return found


def to_strides(name: str, stride: Sizes | None, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of a pooling's windows: None or an empty sequence lays them side by side."""
    stride = one_integer(stride)
    if stride is None or (not isinstance(stride, int) and len(stride) == 0):  # torch.max_pool2d's own default is ()
        return kernel
    return to_axes(name, "stride", stride, len(kernel))


def lacks_batch(name: str, input: Tensor, axes: int) -> bool:
    """Whether the input is (channels, and the axes). Raises ShapeError where it is not (batch, channels, and the axes) either."""
    n = input.ndim
    if n not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} has {n} dimensions; give (batch, channels, {AXES[axes]}) or (channels, {AXES[axes]})"
        )
    return n == axes + 1


def add_batch(name: str, input: Tensor, axes: int = 2) -> tuple[Tensor, bool]:
    """The input as (batch, channels, and the axes), and whether it came without a batch."""
    if input.ndim == axes + 2:  # every convolution comes by here: the usual one without a further call
        return input, False
    lacks_batch(name, input, axes)
    return input.unsqueeze(0), True


def copy_channels_last(x: Tensor, y: Tensor) -> Tensor:
    """y, channels last where x is, an image or a volume."""
    if not is_channels_last(x._array.shape, x.stride()):
        return y
    return y.contiguous(memory_format=channels_last if y.ndim == 4 else channels_last_3d)  # type: ignore[no-any-return]


def to_image_of_one_row(x: Tensor) -> Tensor:
    """Rows (batch, channels, w) as images of one row. The channels of a single sample that lie innermost are seen to, which unsqueeze forgets."""
    n, _, w = x.shape
    if (
        (n == 1 or w == 1)
        and x.stride(1) == 1
        and (w > 1 or x.stride(2) >= x.shape[1])
        and is_contiguous((turned := ops.permute(x, dims=(0, 2, 1)))._array)
    ):
        return ops.permute(ops.reshape(turned, shape=(n, 1, w, x.shape[1])), dims=(0, 3, 1, 2))  # type: ignore[no-any-return]
    return x.unsqueeze(-2)  # type: ignore[no-any-return]
