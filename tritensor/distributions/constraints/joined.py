"""Constraints on parts of a value: pieces one after the other, or slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.constraints.base import Constraint
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class _Parts(Constraint):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        wrong = [c for c in cseq if not isinstance(c, Constraint)]
        if wrong:
            raise ArgumentError(
                f"{type(self).__name__.removeprefix('_').lower()}: {wrong[0]!r} is no constraint; give a list of constraints"
            )
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

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
        pieces = value.split(self.lengths, self.dim)
        return T.cat([c.check(v) for c, v in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Parts):
    """A constraint on each slice along a dimension."""

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        self._require_dim(value)
        slices = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        checked: list[Any] = [c.check(v) for c, v in zip(self.cseq, slices, strict=True)]
        return T.stack(checked, self.dim)


cat, stack = _Cat, _Stack
