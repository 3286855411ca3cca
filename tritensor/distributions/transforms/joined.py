"""Transforms of parts of a value: pieces one after the other, or slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.parameters import sum_rightmost
from tritensor.distributions.transforms.base import Transform
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def _check_transforms(name: str, tseq: Sequence[Any], cache_size: int) -> list[Transform]:
    wrong = [t for t in tseq if not isinstance(t, Transform)]
    if wrong:
        raise ArgumentError(f"{name}: {wrong[0]!r} is no transform; give a list of transforms")
    return [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)


def _require_dim_size(transform: Any, x: Tensor, dim: int, size: int) -> None:
    if not -x.dim() <= dim < x.dim() or x.shape[dim] != size:
        raise ArgumentError(
            f"{type(transform).__name__}: a tensor of shape {tuple(x.shape)}; along dim {dim} it must hold {size}, which its transforms take"
        )


class CatTransform(Transform):
    """A transform for each piece of the given lengths (1 each unless they are given) along a dimension."""

    _arguments = ("transforms", "dim", "lengths")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        self.transforms = _check_transforms("CatTransform", tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(
                f"CatTransform: {len(self.transforms)} transforms and {len(self.lengths)} lengths; give one length for each"
            )
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """How many elements along the dimension it takes."""
        return sum(self.lengths)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Each piece in its transform's."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Each piece in its transform's."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _pieces(self, x: Tensor) -> Any:
        _require_dim_size(self, x, self.dim, self.length)
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return T.cat([t(v) for t, v in zip(self.transforms, self._pieces(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.cat([t.inv(v) for t, v in zip(self.transforms, self._pieces(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        each = [sum_rightmost(t.log_abs_det_jacobian(v, w), self.event_dim - t.event_dim) for t, v, w in parts]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        # inside an event the pieces' logarithms add up, outside each event has its own
        return T.cat(each, dim) if dim < 0 else sum(each)  # type: ignore[return-value]


class StackTransform(Transform):
    """A transform for each slice along a dimension."""

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        self.transforms = _check_transforms("StackTransform", tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Each slice in its transform's."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Each slice in its transform's."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _slices(self, x: Tensor) -> list[Tensor]:
        _require_dim_size(self, x, self.dim, len(self.transforms))
        return [x.select(self.dim, i) for i in range(len(self.transforms))]

    def _call(self, x: Tensor) -> Tensor:
        return T.stack([t(v) for t, v in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.stack([t.inv(v) for t, v in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return T.stack([t.log_abs_det_jacobian(v, w) for t, v, w in parts], self.dim)
