"""constant_pad_nd: one value around a tensor, along any of its dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import preserve_format
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function

Sides = Sequence[tuple[int, int]]


def parse_padding(name: str, input: Tensor, pad: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each dimension that `pad`, which begins with the last one, reaches, and (0, 0) for those in front."""
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError(
            f"{name}: {tuple(pad)} for input {tuple(input.shape)}: give two sizes per dimension, the last dimension first, at most {2 * input.ndim}"
        )
    pad = [one_integer(p) for p in pad]
    if not all(isinstance(p, int) for p in pad):
        raise TypeError(f"{name}: pad is {tuple(pad)!r}; give integers")
    return [(0, 0)] * (input.ndim - len(pad) // 2) + [(int(pad[2 * k]), int(pad[2 * k + 1])) for k in reversed(range(len(pad) // 2))]


def crop(x: Tensor, sides: Sides) -> Tensor:
    """x without what negative sizes take off."""
    if all(before >= 0 and after >= 0 for before, after in sides):
        return x
    return x[tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, sides, strict=True))]


@function(method=False)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """x with `value` around it: pad is (before, after) of the last dimension, then of the one before it, and so on; negative cuts off."""
    sides = parse_padding("constant_pad_nd", x, pad)
    for n, (before, after) in zip(x.shape, sides, strict=True):
        if n < max(-before, 0) + max(-after, 0) or n + before + after < 0:
            raise ShapeError(f"constant_pad_nd: {tuple(pad)} takes more off input {tuple(x.shape)} than there is")
    given = value.item() if isinstance(value, np.generic) else value
    filling = 0 if given is None else dtypes.as_element(x.array.dtype, given, "constant_pad_nd")
    added = tuple((max(before, 0), max(after, 0)) for before, after in sides)
    rest = crop(x, sides)
    if not any(before or after for before, after in added):
        return ops.copy(rest, memory_format=preserve_format)
    return ops.constant_pad(rest, sides=added, value=filling)
