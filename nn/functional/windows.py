"""Arguments of functions that slide a window over an image: sizes in pairs, inputs without a batch."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.errors import ShapeError
from tritensor.tensor.core import Tensor


def pair(name: str, what: str, value: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) from one number or two."""
    if isinstance(value, int):
        return value, value
    found = tuple(value)
    if len(found) == 1:
        found *= 2
    if len(found) != 2 or not all(isinstance(v, int) for v in found):
        raise ShapeError(f"{name}: {what} is {value!r}; give one integer, or two for height and width")
    return found


def steps(name: str, stride: int | Sequence[int] | None, kernel: tuple[int, int]) -> tuple[int, int]:
    """The steps of a pooling's windows: None or an empty sequence lays them side by side."""
    return kernel if stride is None or (not isinstance(stride, int) and len(stride) == 0) else pair(name, "stride", stride)


def batched(name: str, input: Tensor) -> tuple[Tensor, bool]:
    """The input as (batch, channels, height, width), and whether it came without a batch."""
    n = input.ndim
    if n not in (3, 4):
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} has {n} dimensions; give (batch, channels, height, width) or (channels, height, width)"
        )
    return (input, False) if n == 4 else (input.unsqueeze(0), True)
