"""make_tensor: random tensors of any type for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.ground.device import as_device
from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values in [low, high): by default [0, 2) for bool, [0, 10) or [-9, 10) for integers, [-9, 9) for floating types.

    `noncontiguous` steps over every other element of the last dimension; `exclude_zero` puts 1, or the smallest normal number, for 0.

    Raises:
        ArgumentError: low not below high, requires_grad of integers, noncontiguous together with a memory format.
        DTypeError: a type that is not drawn (float8).
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else tuple(shape)
    kind, place = as_dtype(dtype), as_device(device)
    if noncontiguous and memory_format is not None:
        raise ArgumentError("make_tensor: noncontiguous and memory_format exclude one another; give one")
    if requires_grad and kind.kind not in ("float", "complex"):
        raise ArgumentError(f"make_tensor: requires_grad=True of {kind.name}, which has no gradient; leave it out")
    if kind.kind == "float8":
        raise DTypeError(f"make_tensor: {kind.name} is not drawn; draw float32 and convert")
    stepped = noncontiguous and math.prod(sizes) > 1  # one element is contiguous however it lies
    drawn = (*sizes[:-1], 2 * sizes[-1]) if stepped else sizes
    made = _floats(drawn, kind, place, low, high) if kind.kind in ("float", "complex") else _integers(drawn, kind, place, low, high)
    if stepped:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if kind.kind not in ("float", "complex") else float(_limits(kind).tiny)
    return made.requires_grad_() if requires_grad else made


def _limits(kind: Any) -> Any:
    return (ml_dtypes.finfo if kind.kind in ("float", "complex") else np.iinfo)(kind.numpy)  # numpy's own does not know bfloat16


def _bounds(
    kind: Any, low: float | None, high: float | None, least: float, most: float, default: tuple[float, float]
) -> tuple[float, float]:
    """The bounds given or the default ones, within the type's range."""
    a, b = (default[0] if low is None else low), (default[1] if high is None else high)
    if math.isnan(a) or math.isnan(b):
        raise ArgumentError(f"make_tensor: low {low} and high {high} must be numbers")
    if a > b or (a == b and kind.kind not in ("float", "complex")):
        raise ArgumentError(f"make_tensor: low {a} is not below high {b}; give a range that is not empty")
    if a > most or b < least:
        raise ArgumentError(f"make_tensor: [{a}, {b}) lies outside of what {kind.name} holds")
    return min(max(a, least), most), min(max(b, least), most)


def _floats(shape: tuple[int, ...], kind: Any, place: Any, low: float | None, high: float | None) -> Tensor:
    limits = _limits(kind)
    a, b = _bounds(kind, low, high, float(limits.min), float(limits.max), (-9, 9))
    parts: Any = [public["rand"](shape) for _ in range(1 + (kind.kind == "complex"))]
    scaled = [p * (b / 2 - a / 2) * 2 + a for p in parts]  # halves: b - a may overflow
    values = scaled[0]._array if len(scaled) == 1 else scaled[0]._array + 1j * scaled[1]._array
    made: Tensor = Tensor.wrap(np.asarray(values).astype(kind.numpy)).to(place)
    return made


def _integers(shape: tuple[int, ...], kind: Any, place: Any, low: float | None, high: float | None) -> Tensor:
    if kind.kind == "bool":
        a, b = _bounds(kind, low, high, 0, 2, (0, 2))
    else:
        limits = _limits(kind)
        most = int(limits.max) + (limits.max < 2**63 - 1)  # high is exclusive: the largest number too is drawn where int64 holds one more
        a, b = _bounds(kind, low, high, int(limits.min), min(most, 2**63 - 1), (0 if kind.kind == "uint" else -9, 10))
    made: Tensor = public["randint"](math.ceil(a), math.ceil(b), shape).to(kind).to(place)
    return made
