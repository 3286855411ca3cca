"""biject_to and transform_to: a transform from real numbers onto the set that a constraint describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.distributions import constraints, transforms


class ConstraintRegistry:
    """Transforms by the class of the constraint that they lead to: `registry(constraint)` makes one."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Make `factory(constraint)` answer for a class of constraints (or an instance's class). Without a factory it is a decorator."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"register: {constraint!r} is neither a constraint nor a class of constraints; give one of these")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform for a constraint. Raises NotImplementedError for a class that none is registered for."""
        factory = self._registry.get(type(constraint))  # the exact class: a subclass may be a smaller set
        if factory is None:
            raise NotImplementedError(f"no transform is registered for {constraint!r}; register one for {type(constraint).__name__}")
        return factory(constraint)


biject_to = ConstraintRegistry()  # bijections: the log density carries over exactly
transform_to = ConstraintRegistry()  # any transform onto the set, fast and stable ones first: for optimizers


def _register_in_both(*kinds: Any) -> Callable[[Any], Any]:

    def decorate(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@_register_in_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_register_in_both(constraints.positive, constraints.nonnegative)
def _to_above(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_register_in_both(constraints.less_than)
def _to_below(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_register_in_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, int | float) and isinstance(upper, int | float) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)])


def _register_events(registry: ConstraintRegistry, made: dict[Any, type[transforms.Transform]]) -> None:
    """Constraints on whole events without a number of their own: {constraint: the class of its transform}."""
    for kind, transform in made.items():
        registry.register(kind, lambda _, transform=transform: transform())  # type: ignore[misc]  # bound now: the loop goes on


_register_events(
    biject_to, {constraints.corr_cholesky: transforms.CorrCholeskyTransform, constraints.simplex: transforms.StickBreakingTransform}
)
_register_events(transform_to, {
    constraints.corr_cholesky: transforms.CorrCholeskyTransform, constraints.simplex: transforms.SoftmaxTransform,
    constraints.lower_cholesky: transforms.LowerCholeskyTransform, constraints.positive_definite: transforms.PositiveDefiniteTransform,
    constraints.positive_semidefinite: transforms.PositiveDefiniteTransform,  # as PyTorch has it: its interior
})  # fmt: skip


def _register_parts(registry: ConstraintRegistry) -> None:
    """Constraints made of others: each by its own transform out of the same registry."""

    def independent(constraint: Any) -> Any:
        return transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> Any:
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    for kind, factory in ((constraints.independent, independent), (constraints.cat, cat), (constraints.stack, stack)):
        registry.register(kind, factory)


_register_parts(biject_to)
_register_parts(transform_to)
