"""Constraints: the sets that parameters and draws of distributions lie in. PyTorch's `torch.distributions.constraints`."""

from tritensor.distributions.constraints.base import Constraint as Constraint
from tritensor.distributions.constraints.base import MixtureSameFamilyConstraint as MixtureSameFamilyConstraint
from tritensor.distributions.constraints.base import _Dependent as _Dependent
from tritensor.distributions.constraints.base import _DependentProperty as _DependentProperty
from tritensor.distributions.constraints.base import _IndependentConstraint as _IndependentConstraint
from tritensor.distributions.constraints.base import dependent as dependent
from tritensor.distributions.constraints.base import dependent_property as dependent_property
from tritensor.distributions.constraints.base import independent as independent
from tritensor.distributions.constraints.base import is_dependent as is_dependent
from tritensor.distributions.constraints.joined import _Cat as _Cat
from tritensor.distributions.constraints.joined import _Stack as _Stack
from tritensor.distributions.constraints.joined import cat as cat
from tritensor.distributions.constraints.joined import stack as stack
from tritensor.distributions.constraints.numbers import _Boolean as _Boolean
from tritensor.distributions.constraints.numbers import _GreaterThan as _GreaterThan
from tritensor.distributions.constraints.numbers import _GreaterThanEq as _GreaterThanEq
from tritensor.distributions.constraints.numbers import _HalfOpenInterval as _HalfOpenInterval
from tritensor.distributions.constraints.numbers import _IntegerGreaterThan as _IntegerGreaterThan
from tritensor.distributions.constraints.numbers import _IntegerInterval as _IntegerInterval
from tritensor.distributions.constraints.numbers import _IntegerLessThan as _IntegerLessThan
from tritensor.distributions.constraints.numbers import _Interval as _Interval
from tritensor.distributions.constraints.numbers import _LessThan as _LessThan
from tritensor.distributions.constraints.numbers import _Real as _Real
from tritensor.distributions.constraints.numbers import boolean as boolean
from tritensor.distributions.constraints.numbers import greater_than as greater_than
from tritensor.distributions.constraints.numbers import greater_than_eq as greater_than_eq
from tritensor.distributions.constraints.numbers import half_open_interval as half_open_interval
from tritensor.distributions.constraints.numbers import integer_interval as integer_interval
from tritensor.distributions.constraints.numbers import interval as interval
from tritensor.distributions.constraints.numbers import less_than as less_than
from tritensor.distributions.constraints.numbers import nonnegative as nonnegative
from tritensor.distributions.constraints.numbers import nonnegative_integer as nonnegative_integer
from tritensor.distributions.constraints.numbers import positive as positive
from tritensor.distributions.constraints.numbers import positive_integer as positive_integer
from tritensor.distributions.constraints.numbers import real as real
from tritensor.distributions.constraints.numbers import real_vector as real_vector
from tritensor.distributions.constraints.numbers import unit_interval as unit_interval
from tritensor.distributions.constraints.vectors import _CorrCholesky as _CorrCholesky
from tritensor.distributions.constraints.vectors import _LowerCholesky as _LowerCholesky
from tritensor.distributions.constraints.vectors import _LowerTriangular as _LowerTriangular
from tritensor.distributions.constraints.vectors import _Multinomial as _Multinomial
from tritensor.distributions.constraints.vectors import _OneHot as _OneHot
from tritensor.distributions.constraints.vectors import _PositiveDefinite as _PositiveDefinite
from tritensor.distributions.constraints.vectors import _PositiveSemidefinite as _PositiveSemidefinite
from tritensor.distributions.constraints.vectors import _Simplex as _Simplex
from tritensor.distributions.constraints.vectors import _Square as _Square
from tritensor.distributions.constraints.vectors import _Symmetric as _Symmetric
from tritensor.distributions.constraints.vectors import corr_cholesky as corr_cholesky
from tritensor.distributions.constraints.vectors import lower_cholesky as lower_cholesky
from tritensor.distributions.constraints.vectors import lower_triangular as lower_triangular
from tritensor.distributions.constraints.vectors import multinomial as multinomial
from tritensor.distributions.constraints.vectors import one_hot as one_hot
from tritensor.distributions.constraints.vectors import positive_definite as positive_definite
from tritensor.distributions.constraints.vectors import positive_semidefinite as positive_semidefinite
from tritensor.distributions.constraints.vectors import simplex as simplex
from tritensor.distributions.constraints.vectors import square as square
from tritensor.distributions.constraints.vectors import symmetric as symmetric

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
    "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
