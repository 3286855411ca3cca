"""Places of arguments that are no tensors: which other value would be the same argument."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from tritensor.dispatch.plans.door_code import ABSENT
from tritensor.ground.device import device
from tritensor.ground.dtypes import DType
from tritensor.ground.strides import MemoryFormat
from tritensor.tensor.public_api.layout import layout


class Place:
    """Where an argument comes from: `t` is what it is in the run of now. `kind` is the type that an equal value may have (None: it must be the same object),
    and `same` what that is equal to: 1, True and 1.0 are not the same in a tuple, either."""

    __slots__ = ("kind", "same", "t")

    def __init__(self, t: Any, kind: type | None = None, same: Any = None) -> None:
        self.t, self.kind, self.same = t, kind, same


NOTHING = Place(ABSENT)  # an argument that was not given
_EQUAL = frozenset((int, float, str, bool, type(None)))
_CONSTANT = (DType, device, MemoryFormat, layout, np.dtype, type, type(...), complex, bytes, Enum)  # kinds of objects that do not change


class _Same:
    """What a value of the same type is equal to, and no tensor is."""

    __slots__ = ("kind", "value")

    def __init__(self, value: Any) -> None:
        self.kind, self.value = type(value), value

    def __eq__(self, other: Any) -> bool:
        return other is self.value or (type(other) is self.kind and bool(other == self.value))


class _SameSlice:
    """What a slice with these bounds is equal to, and none with tensors."""

    __slots__ = ("like", "start", "step", "stop")

    def __init__(self, like: slice) -> None:
        self.like, self.start, self.stop, self.step = like, like.start, like.stop, like.step

    def __eq__(self, other: Any) -> bool:
        try:
            if other.start is self.start and other.stop is self.stop and other.step is self.step:  # as small numbers are
                return True
        except AttributeError:  # no slice
            return False
        return {type(other.start), type(other.stop), type(other.step)} <= _BOUNDS and bool(other == self.like)


_BOUNDS = {int, type(None)}


class _Changes(Exception):
    """A value may be another one in the next run although it is the same object."""


def atom(value: Any) -> Place | None:
    """The place of a value that no tensor is in; None for one that may change, or ask what has changed."""
    try:
        same = _same(value)
    except _Changes:
        return None
    if same is value and value is not None:
        return Place(value)
    return Place(value, type(value), value if type(value) in _EQUAL else same)


def _same(value: Any) -> Any:
    """What such a value is compared with: itself, where it must be the same object, as of zero the sign counts. Raises _Changes."""
    kind = type(value)
    if kind in _EQUAL:
        return value if kind is float and value == 0.0 else None if value is None else _Same(value)
    if kind is slice:
        bounds = {type(value.start), type(value.stop), type(value.step)}
        if not bounds <= _BOUNDS:
            raise _Changes
        return _ALL if bounds == {type(None)} else _SameSlice(value)
    if isinstance(value, tuple):
        parts = [_same(v) for v in value]
        return value if any([p is v and v is not None and v is not ... for p, v in zip(parts, value, strict=True)]) else tuple(parts)
    if value is ABSENT or not isinstance(value, _CONSTANT):
        raise _Changes
    return value


_ALL = slice(None)


def strictly(place: Place) -> Any:
    """What a value is compared with where nobody has looked at its type."""
    return _Same(place.t) if type(place.t) in (int, float, bool) else place.same
