"""finfo and iinfo: what a number type can hold."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.naming.type_names import named, own_name
from tritensor.tensor.public_api.publish import public

_DIGITS = {"float64": 1e-15, "float32": 1e-06, "float16": 0.001, "bfloat16": 0.01, "float8_e4m3fn": 1.0, "float8_e5m2": 1.0}
_PART_TYPES = {"complex64": dtypes.float32, "complex128": dtypes.float64}


class _Limits:
    """What both kinds share: two of one type are equal, none is changed."""

    __slots__ = ("_type",)
    _type: dtypes.DType
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._type is self._type  # type: ignore[attr-defined]

    @property
    def bits(self) -> int:
        """Bits of one number (of one part of a complex number)."""
        return 8 * self._type.itemsize

    @property
    def dtype(self) -> str:
        """The type's name."""
        return self._type.name

    def __reduce__(self) -> Any:
        return own_name(type(self)), (self._type,)


def _limit(name: str, doc: str) -> property:
    """A property of finfo that ml_dtypes knows by the same name."""

    def get(self: finfo) -> float:
        return float(getattr(self._found, name))

    return property(get, doc=doc)


@named("torch")
class finfo(_Limits):
    """Limits of a floating type, without one of the default type: `bits`, `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`, `dtype`.

    A complex type has those of its parts. Raises TypeError for other types.
    """

    __slots__ = ("_found",)

    def __init__(self, type: Any = None) -> None:
        # torch.finfo() is that of the default type.
        given = dtypes.default_float() if type is None else dtypes.as_dtype(type)
        if not (given.is_floating_point or given.is_complex):
            raise TypeError(f"finfo: {given} is not a floating type; use iinfo")
        # PyTorch's finfo of a complex type is that of its parts.
        self._type = _PART_TYPES.get(given.name, given)
        self._found = ml_dtypes.finfo(self._type.numpy)

    eps = _limit("eps", "The distance from 1 to the next number.")
    max = _limit("max", "The largest finite number.")
    min = _limit("min", "The smallest finite number, -max.")
    smallest_normal = _limit("smallest_normal", "The smallest positive number of full precision.")
    tiny = smallest_normal

    @property
    def resolution(self) -> float:
        """10 ** -n for the n decimal digits that a number holds."""
        return _DIGITS[self._type.name]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={getattr(self, n):g}" for n in ("resolution", "min", "max", "eps", "smallest_normal", "tiny"))
        return f"finfo({shown}, dtype={self.dtype})"


@named("torch")
class iinfo(_Limits):
    """Limits of an integer type: `bits`, `max`, `min`, `dtype`. Raises TypeError for other types."""

    __slots__ = ()

    def __init__(self, type: Any) -> None:
        given = dtypes.as_dtype(type)
        if given.kind not in ("int", "uint"):
            raise TypeError(
                f"iinfo: {given} is not an integer type; " + ("it holds False and True" if given.kind == "bool" else "use finfo")
            )
        self._type = given

    @property
    def max(self) -> int:
        """The largest number."""
        return int(np.iinfo(self._type.numpy).max)

    @property
    def min(self) -> int:
        """The smallest number."""
        return int(np.iinfo(self._type.numpy).min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


for _class in (finfo, iinfo):
    _class.__module__ = "tritensor"
    public[_class.__name__] = _class
