"""Numbers that vary with the sizes of the inputs: one value for each of the runs that were traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from tritensor.onnx.errors import DynamicAxisError


class Varying:
    """An integer with a value for each traced run. Arithmetic goes run by run, and gives an int where all runs agree."""

    __slots__ = ("runs",)

    def __init__(self, runs: tuple[int, ...]) -> None:
        self.runs = runs

    def _combine(self, other: Any, f: Callable[[int, int], int]) -> Any:
        if isinstance(other, Varying):
            return merge_runs([f(a, b) for a, b in zip(self.runs, other.runs, strict=True)])
        if isinstance(other, int):
            return merge_runs([f(a, other) for a in self.runs])
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._combine(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, operator.sub)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, operator.mul)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, operator.floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, operator.mod)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: b - a)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: b // a)

    def __neg__(self) -> Any:
        return merge_runs([-a for a in self.runs])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Varying) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def _require_agreement(self, found: list[bool]) -> bool:
        if len(set(found)) > 1:
            raise self.fixed_size_error("is compared with a number, and the outcome differs")
        return found[0]

    def _compare(self, other: Any, f: Callable[[int, int], bool]) -> bool:
        others = other.runs if isinstance(other, Varying) else (other,) * len(self.runs)
        return self._require_agreement([f(a, b) for a, b in zip(self.runs, others, strict=True)])

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, operator.ge)

    def __bool__(self) -> bool:
        return self._require_agreement([bool(a) for a in self.runs])

    def fixed_size_error(self, what: str) -> DynamicAxisError:
        """The error of a place where a number is needed."""
        return DynamicAxisError(f"a size that varies with the inputs ({', '.join(map(str, self.runs))} in the traced runs) {what}")

    def __index__(self) -> NoReturn:
        raise self.fixed_size_error("is needed as a number there")

    __int__ = __index__

    def __repr__(self) -> str:
        return f"Varying{self.runs}"


class VaryingFloat:
    """A float with a value for each traced run."""

    __slots__ = ("runs",)

    def __init__(self, runs: tuple[float, ...]) -> None:
        self.runs = runs

    def __float__(self) -> NoReturn:
        raise DynamicAxisError(
            f"a number that varies with the sizes of the inputs ({', '.join(map(str, self.runs))} in the traced runs) is needed as a constant there"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VaryingFloat) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"VaryingFloat{self.runs}"


class Repeated:
    """A tuple of one number, as long as a size says: the rows of each time step of a recurrent net."""

    __slots__ = ("count", "value")

    def __init__(self, value: Any, count: Varying) -> None:
        self.value, self.count = value, count

    def __repr__(self) -> str:
        return f"Repeated({self.value}, {self.count})"


def merge_runs(runs: list[int]) -> Any:
    """An int where all runs agree, else a Varying."""
    return runs[0] if all(r == runs[0] for r in runs) else Varying(tuple(runs))


def varies(x: Any) -> bool:
    """Whether an attribute holds anything that varies."""
    if isinstance(x, tuple | list):
        return any(varies(y) for y in x)
    if isinstance(x, dict):
        return any(varies(y) for y in x.values())
    if isinstance(x, slice):
        return varies((x.start, x.stop, x.step))
    return isinstance(x, Varying | VaryingFloat | Repeated)


def is_static_shape(shape: tuple[Any, ...]) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(type(n) is int for n in shape)
