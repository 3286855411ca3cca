"""Constraint: a set of values; sets that depend on other parameters; constraints on whole events."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class Constraint:
    """A set of values. `check` says which of a batch lie in it; `event_dim` counts the dimensions that make one value."""

    is_discrete: Any = False
    event_dim: Any = 0
    # Whether `check` can be asked of a numpy array as well, which is many times faster for a few numbers.
    on_arrays: Any = False

    def check(self, value: Tensor) -> Tensor:
        """A bool for each value of a batch."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A set that depends on values which are known with an instance only."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete is known with an instance only; ask the support of one")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim is known with an instance only; ask the support of one")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same with what is known of it: `dependent(is_discrete=True, event_dim=1)`."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ArgumentError("dependent: what depends on other values cannot be checked by itself; check against an instance's constraint")


class _DependentProperty(property, _Dependent):
    """A property of a distribution that gives a constraint; asked of the class it is `dependent` itself."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> Any:  # type: ignore[override]
        """`@dependent_property(is_discrete=True, event_dim=1)` decorates a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A constraint on the last dimensions together: all of them must satisfy the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    @property
    def on_arrays(self) -> bool:  # type: ignore[override]
        return self.base_constraint.on_arrays

    def check(self, value: Tensor) -> Tensor:
        return all_over_last_dims(self.base_constraint.check(value), self.reinterpreted_batch_ndims, self.event_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What all components of a mixture allow; they lie along the dimension before an event's."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ArgumentError(f"{self!r}: a value of {value.dim()} dimensions; give {self.event_dim} or more")
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return flatten_last_dims(each, value.dim() - self.event_dim).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def flatten_last_dims(x: Any, kept: int) -> Any:
    """x with all dimensions behind the first `kept` as one, of however many elements, none among them."""
    return x.reshape((*x.shape[:kept], math.prod(x.shape[kept:])))


def all_over_last_dims(fine: Tensor, dims: int, wanted: int) -> Tensor:
    """Which events are fine: all of the last `dims` dimensions. Raises ValueError where there are fewer."""
    # nothing to reduce: the elements are the events
    if dims == 0:
        return fine
    if fine.ndim < dims:
        missing = wanted - dims + fine.ndim
        raise ArgumentError(f"independent: a value of {missing} dimensions; give {wanted} or more")
    return flatten_last_dims(fine, fine.ndim - dims).all(-1)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on values that are known with an instance only."""
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
