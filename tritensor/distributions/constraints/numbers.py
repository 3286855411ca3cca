"""Constraints on single numbers: real, above, below, between; whole numbers."""

from __future__ import annotations

from typing import Any

from tritensor.distributions.constraints.base import Constraint, independent
from tritensor.tensor.core import Tensor


class _Real(Constraint):
    """Any number, infinities among them, but not NaN."""

    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Bounded(Constraint):
    """Numbers with bounds, which are numbers or tensors."""

    bounds: tuple[str, ...] = ()

    @property
    def on_arrays(self) -> bool:  # type: ignore[override]
        return not any(isinstance(getattr(self, b), Tensor) for b in self.bounds)

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}({', '.join(f'{b}={getattr(self, b)}' for b in self.bounds)})"


class _Above(_Bounded):
    bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Between(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _GreaterThan(_Above):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers of a bound or more."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Numbers below a bound."""

    bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between two bounds, these included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers between two bounds, the lower included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True
    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


_INTEGER_KINDS = ("int", "uint", "bool", "i", "u", "b")  # kinds of types, ours and numpy's


def _are_integers(value: Tensor, fine: Tensor) -> Tensor:
    """`fine`, where the value is whole as well."""
    return fine if value.dtype.kind in _INTEGER_KINDS else fine & (value % 1 == 0)


class _IntegerInterval(_Between):
    """Whole numbers between two bounds, these included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _are_integers(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _IntegerLessThan(_Bounded):
    """Whole numbers up to a bound."""

    is_discrete = True
    bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return _are_integers(value, value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _are_integers(value, value >= self.lower_bound)


real, boolean = _Real(), _Boolean()
real_vector = independent(real, 1)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
