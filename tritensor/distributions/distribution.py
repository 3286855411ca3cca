"""Distribution: the base class, with shapes, checks of parameters and values, expansion, and errors for what a distribution lacks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions.lazy import lazy_property
from tritensor.ground.errors import ArgumentError
from tritensor.ground.transforms import WrappedArray
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

# What to do where a distribution has not something.
_SUBSTITUTES = {
    "rsample": "its draws are no differentiable function of its parameters, use sample and log_prob", "enumerate_support": "use sample",
    "expand": "give its class one", "log_prob": "give its class one", "icdf": "use quantiles of draws",
}  # fmt: skip


class _Undefined:
    """An attribute that a subclass must define."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise NotImplementedError(f"{type(instance).__name__}: it has no {self._name}; give its class one")


class Distribution:
    """Distributions over a batch of events: `batch_shape` counts distributions, `event_shape` is that of what each one draws.

    Args:
        validate_args: check parameters when it is made, and values in log_prob, cdf and icdf; True unless set_default_validate_args says otherwise.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    # {attribute: dimensions of one event's parameter}: the tensors and distributions that `expand` spreads over another batch; None for
    # what it hands on as it is. No such table (a user's own class): expand is refused, since nobody knows what __init__ sets.
    _fields: ClassVar[dict[str, int | None] | None] = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions that do not say validate_args check their arguments. Raises ValueError for what is no bool."""
        if value not in [True, False]:
            raise ArgumentError(f"set_default_validate_args: {value!r}; give True or False")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    # -- checks
    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self).__name__} has no arg_constraints, so its parameters are not checked; "
                "set arg_constraints = {}, or validate_args=False, to say that this is meant"
            )
        for name, constraint in arg_constraints.items():
            # a computed parameter follows from one that is checked, and computing it here would undo its laziness
            computed = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or computed:
                continue
            value = getattr(self, name)
            self._require(f"the parameter {name}", value, constraint, "(or validate_args=False to skip the check)")

    def _require(self, what: str, value: Tensor, constraint: Any, mend: str) -> None:
        array = value._array
        # numpy asks most constraints without a single op call; only a failure needs tensors, for its message
        if constraint.on_arrays and isinstance(array, np.ndarray) and constraint.check(array).all():
            return
        fine = constraint.check(value)
        while type(fine._array) is WrappedArray:  # under vmap all examples are asked at once
            fine = fine._array.value
        if fine.all():
            return
        while type(value._array) is WrappedArray:
            value = value._array.value
        wrong = describe_violation(value, fine)
        raise ArgumentError(
            f"{type(self).__name__}: {what} of shape {tuple(value.shape)} must satisfy {constraint!r}; {wrong}; give other values {mend}"
        )

    def _check(self, value: Any) -> None:
        """_validate_sample, where arguments are checked at all."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Refuse what is no tensor, does not fit the shapes, or lies outside the support."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{name}: the value is a {type(value).__name__}, {value!r}; give a tensor")
        cut = len(value.shape) - len(self._event_shape)
        if tuple(value.shape[max(cut, 0) :]) != tuple(self._event_shape):
            raise ArgumentError(
                f"{name}: the value's shape {tuple(value.shape)} does not end in the event_shape {tuple(self._event_shape)}; reshape it"
            )
        whole = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(whole), strict=False):
            # PyTorch takes any value that broadcasts with the batch, in either direction
            if i not in (1, j) and j != 1:
                raise ArgumentError(
                    f"{name}: a value of shape {tuple(value.shape)} does not broadcast with batch_shape + event_shape {whole}; reshape or expand it"
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{name} has no support, so values are not checked; set validate_args=False to say that this is meant")
            return
        if support is None:
            raise ArgumentError(f"{name}: its support is None; give it a constraint, or validate_args=False")
        self._require("the value", value, support, "(or validate_args=False to skip the check)")

    # -- copies
    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its parameters spread over a larger batch_shape; nothing is copied."""
        cls = next((c for c in type(self).__mro__ if c.__dict__.get("_fields") is not None), None)
        if cls is None:
            self._raise_missing("expand")
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        for name, dims in cls._fields.items():  # type: ignore[attr-defined]
            if name in self.__dict__:  # of probs and logits only those that were given or asked for
                value = self.__dict__[name]
                if dims is not None:
                    shape = value.batch_shape if isinstance(value, Distribution) else value.shape
                    value = value.expand((*batch_shape, *shape[len(shape) - dims :]))
                new.__dict__[name] = value
        # a computed value stays marked as computed, or the copy would take it for the parameter that was given
        if "_computed" in self.__dict__:
            new._computed = self._computed & cls._fields.keys()  # type: ignore[attr-defined]
        # every parameter is checked already; only values will be, where they were before
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A bare instance for `expand`. Raises NotImplementedError for a subclass with an `__init__` of its own and no `expand`."""
        # a copy is made without __init__, so what a subclass sets there would be missing from it
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__} is a {cls.__name__} with an __init__ of its own; it needs an expand(batch_shape) of its own as well"
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    # -- shapes
    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # -- what subclasses define
    def _raise_missing(self, what: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}: it has no {what}; {_SUBSTITUTES.get(what, 'use the average over draws')}")

    arg_constraints: ClassVar[Any] = _Undefined("arg_constraints")  # {parameter: the constraint that it must satisfy}
    support: Any = _Undefined("support")  # the constraint that draws satisfy

    @property
    def mean(self) -> Tensor:
        """The mean."""
        self._raise_missing("mean")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        self._raise_missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        self._raise_missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, the variance's root."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws through which gradients reach the parameters."""
        self._raise_missing("rsample")

    # of draws, those moved that rounding has put where the density is 0 or infinite
    _move_inside_support: ClassVar[Callable[..., Any]] = staticmethod(lambda drawn: drawn)

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)). Deprecated, as in PyTorch."""
        warnings.warn("sample_n(n) is deprecated; write sample((n,))", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        self._raise_missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        self._raise_missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which the probability is the one given."""
        self._raise_missing("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension; expand=False leaves the batch's dimensions at size 1."""
        self._raise_missing("enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        self._raise_missing("entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = [(k, self.__dict__[k]) for k in names]
        return f"{type(self).__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in shown)})"


def describe_violation(value: Tensor, fine: Tensor) -> str:
    """What of a value is wrong: the first such element, where it stands, and how many there are."""
    value, fine = value.detach(), fine.detach()
    count = int((~fine).sum())
    if fine.dim() == 0:
        shown = f"{value.item()}" if value.dim() == 0 else f"{value.tolist()}" if value.numel() <= 16 else "the values"
        return f"{shown} does not"
    at = tuple((~fine).nonzero()[0].tolist()[-min(fine.dim(), value.dim()) :])
    if fine.dim() != value.dim() or fine.shape != value.shape:  # one truth for each event
        part = value[at] if value.dim() >= len(at) and all(i < n for i, n in zip(at, value.shape, strict=False)) else value
        shown = f"{part.tolist()}" if part.numel() <= 16 else "what stands there"
    else:
        shown = f"{value[at].item()}"
    more = f", {count} of {fine.numel()} do not" if count > 1 else ""
    return f"{shown} at {list(at)} does not{more}"
