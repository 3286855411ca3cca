"""Transform, a function with its inverse and log |det Jacobian|; the inverse and the composition of transforms."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.lazy import delegate, lazy_property
from tritensor.distributions.parameters import sum_rightmost
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class Transform:
    """y = t(x) from `domain` to `codomain`. Subclasses define `_call`, and `_inverse` and `log_abs_det_jacobian` where these exist.

    Args:
        cache_size: 1 keeps the last pair (x, y), so that `t.inv(y)` gives x itself back; 0 keeps none.
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _arguments: ClassVar[tuple[str, ...]] = ()  # of __init__, but cache_size: they stand under their names

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"{type(self).__name__}: cache_size is {cache_size}; it must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = None, None
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # a weak reference

    @property
    def event_dim(self) -> int:
        """Dimensions of one event, where those of domain and codomain are as many. Raises ValueError where they are not."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim  # type: ignore[no-any-return]
        raise ArgumentError(
            f"{type(self).__name__}: its domain's events have {self.domain.event_dim} dimensions, its codomain's {self.codomain.event_dim}; "
            "use .domain.event_dim or .codomain.event_dim"
        )

    @property
    def inv(self) -> Any:
        """The inverse, a transform itself; `t.inv.inv is t`."""
        # a weak reference, or transform and inverse would keep one another alive until the cycle collector runs
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 of a rising function of one number, -1 of a falling one."""
        raise NotImplementedError(f"{type(self).__name__} neither rises nor falls everywhere")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        # a subclass with arguments of its own cannot be made anew from the cache size alone; of one of ours PyTorch makes the base class
        for cls in type(self).__mro__:
            if "_arguments" in vars(cls) and cls is not Transform:
                return cls(*[getattr(self, name) for name in vars(cls)["_arguments"]], cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__} has an __init__ of its own; it needs a with_cache(cache_size) of its own as well")

    __hash__ = None  # type: ignore[assignment]  # equal ones may hold different tensors, which have no hash by value

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        # by identity: comparing values would cost as much as the transform
        if x is x_old:
            return y_old  # type: ignore[no-any-return]
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        # by identity: this gives the draw itself back, without the rounding of an inverse
        if y is y_old:
            return x_old  # type: ignore[no-any-return]
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx|, one number for each event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of t(x) of an x of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of t.inv(y) of a y of this shape."""
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    """A transform the other way round; of `t.inv`."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)  # here _inv is the transform itself, and no weak reference

    domain = delegate("_inv.codomain")
    codomain = delegate("_inv.domain")
    bijective = delegate("_inv.bijective")
    sign = delegate("_inv.sign")

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


def _reinterpret_event_dims(constraint: Any, event_dim: int) -> Any:
    extra = event_dim - constraint.event_dim
    return constraints.independent(constraint, extra) if extra > 0 else constraint


class ComposeTransform(Transform):
    """Transforms applied one after the other, the first of the list first."""

    _arguments = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [p.with_cache(cache_size) for p in parts]
        super().__init__(cache_size=cache_size)
        self.parts = list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The first part's, with as many event dimensions as any part needs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for p in reversed(self.parts):
            dims = max(dims + p.domain.event_dim - p.codomain.event_dim, p.domain.event_dim)
        return _reinterpret_event_dims(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The last part's, with as many event dimensions as any part needs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for p in self.parts:
            dims = max(dims + p.codomain.event_dim - p.domain.event_dim, p.codomain.event_dim)
        return _reinterpret_event_dims(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        sign: Any = 1
        for p in self.parts:
            sign = sign * p.sign
        return sign

    @property
    def inv(self) -> Any:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)  # t.inv.inv is t
        return inverse

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x * 0  # zeros in x's shape and graph
        between = [x]
        for part in self.parts[:-1]:
            between.append(part(between[-1]))
        between.append(y)
        total: Any = 0
        dims = self.domain.event_dim
        for part, before, after in zip(self.parts, between, between[1:], strict=False):
            total = total + sum_rightmost(part.log_abs_det_jacobian(before, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(repr(p) for p in self.parts) + "\n)"


identity_transform = ComposeTransform([])
