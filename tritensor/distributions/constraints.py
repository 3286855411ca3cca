"""Constraints: the sets that parameters and draws of distributions lie in. PyTorch's `torch.distributions.constraints`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.distributions import functions as T
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.types.limits import finfo

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
    "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


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

    # NotImplemented is PyTorch's word for "nobody said": False and 0 are answers
    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

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


class _DependentProperty(property, _Dependent):  # property first: an instance shows the constraint, the class this object
    """A property of a distribution that gives a constraint; asked of the class it is `dependent` itself."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> Any:  # type: ignore[override]
        """`@dependent_property(is_discrete=True, event_dim=1)` decorates a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _OfBase(Constraint):
    """A constraint made of another one, whose kind of values it has."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim


class _IndependentConstraint(_OfBase):
    """A constraint on the last dimensions together: all of them must satisfy the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

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


class MixtureSameFamilyConstraint(_OfBase):
    """What all components of a mixture allow; they lie along the dimension before an event's."""

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ArgumentError(f"{self!r}: a value of {value.dim()} dimensions; give {self.event_dim} or more")
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))  # against every component
        return flatten_last_dims(each, value.dim() - self.event_dim).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def flatten_last_dims(x: Any, kept: int) -> Any:
    """x with all dimensions behind the first `kept` as one, of however many elements, none among them."""
    return x.reshape((*x.shape[:kept], math.prod(x.shape[kept:])))  # -1 has no one meaning where there are no elements


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


class _Real(Constraint):
    """Any number, infinities among them, but not NaN."""

    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return value == value  # only NaN differs from itself; arrays and tensors both can say so


class _Bounded(Constraint):
    """Numbers with bounds, which are numbers or tensors."""

    bounds: tuple[str, ...] = ()

    @property
    def on_arrays(self) -> bool:  # type: ignore[override]
        # numpy would turn a tensor into an array of objects, or fail where it lies on a GPU
        return not any(isinstance(getattr(self, b), Tensor) for b in self.bounds)

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}({', '.join(f'{b}={getattr(self, b)}' for b in self.bounds)})"


class _Above(_Bounded):
    bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers of a bound or more."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Below):
    """Numbers below a bound."""

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
    # no remainder, which is an op, for types that hold nothing else
    return fine if value.dtype.kind in _INTEGER_KINDS else fine & (value % 1 == 0)


class _IntegerInterval(_Between):
    """Whole numbers between two bounds, these included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _are_integers(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _IntegerLessThan(_Below):
    """Whole numbers up to a bound."""

    is_discrete = True

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
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)  # "greater" from the bound on


TOLERANCE = 1e-6  # how far from 1 a simplex may sum, how far from symmetric a matrix may be


class _Simplex(Constraint):
    """Numbers of 0 or more that sum to 1 along the last dimension."""

    event_dim = 1
    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < TOLERANCE)


class _OneHot(Constraint):
    """A single 1 among zeros, along the last dimension."""

    is_discrete = True
    event_dim = 1
    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Numbers of 0 or more that sum to `upper_bound` at most, along the last dimension."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Such matrices with rows of length 1: the factors of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        near = float(finfo(value.dtype).eps) * value.shape[-1] * 10  # what rounding makes of a row's length
        length = (value.detach() * value.detach()).sum(-1).sqrt()  # a check leaves no graph
        return ((length - 1).abs() <= near).all(-1) & super().check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return T.full(tuple(value.shape[:-2]), value.shape[-2] == value.shape[-1], dtype=bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        # the transpose of another shape compares with nothing
        return square if value.shape[-2] != value.shape[-1] else T.isclose(value, value.mT, atol=TOLERANCE).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        # eigvalsh reads one triangle: without the question before it, any other would pass
        return symmetric if not symmetric.all() else (T.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices of positive eigenvalues: those that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else T.cholesky_ex(value).info == 0  # cheaper than eigenvalues


simplex, one_hot = _Simplex(), _OneHot()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric, positive_semidefinite, positive_definite = _Square(), _Symmetric(), _PositiveSemidefinite(), _PositiveDefinite()
multinomial = _Multinomial


class _Parts(Constraint):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        wrong = [c for c in cseq if not isinstance(c, Constraint)]
        if wrong:
            raise ArgumentError(
                f"{type(self).__name__.removeprefix('_').lower()}: {wrong[0]!r} is no constraint; give a list of constraints"
            )
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    def _require_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise ArgumentError(f"{self!r}: dim is {self.dim}, the value has {value.dim()} dimensions; give one that has it")


class _Cat(_Parts):
    """Constraints on pieces of the given lengths (1 each unless they are given) along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ArgumentError(f"cat: {len(self.cseq)} constraints and {len(self.lengths)} lengths; give one length for each")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        self._require_dim(value)
        pieces = value.split(self.lengths, self.dim)  # which raises where the lengths do not add up
        return T.cat([c.check(v) for c, v in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Parts):
    """A constraint on each slice along a dimension."""

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim  # whether the stacked dimension lies inside an event

    def check(self, value: Tensor) -> Tensor:
        self._require_dim(value)
        slices = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        checked: list[Any] = [c.check(v) for c, v in zip(self.cseq, slices, strict=True)]
        return T.stack(checked, self.dim)


cat, stack = _Cat, _Stack
