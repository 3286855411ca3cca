"""Ending: what runs when a path ends at some record while so and so is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.fusion.graph import Value, needed
from tritensor.fusion.structure import plan_of
from tritensor.lazy_evaluation.known.records import Hand, Leaf, Trail
from tritensor.lazy_evaluation.storing import store_results
from tritensor.ops.lazy_array import PendingStorage, window_of


class Ending:
    """The plan of a path's calls for the results that are held, made once. storages: of each held hand the number of its memory. tracked: whether some
    of them has a node, which no plan makes."""

    def __init__(self, trail: Trail, held: Sequence[Hand]) -> None:
        self.trail = trail
        self.storages = [h.storage for h in held]
        self.tracked = any([h.tracked for h in held])
        self.values = {n: trail.held[n] for n in self.storages}
        self.wanted = set(self.values.values())
        self.calls = needed(trail.calls, self.wanted)
        self.bound: Any = None
        self.leaves: list[Any] = []  # what the plan is given, Leaf or Derived, in order
        self.numbers: list[int] = []  # of the memory that each of its results is
        self.called: list[Any] = []

    def run(self, places: Sequence[tuple[int, int]]) -> dict[int, Any] | None:
        """The arrays of the memory that is held, by its number; None where a call fails, which then is to be called by itself. places: of random numbers."""
        trail = self.trail
        for (call, _), (seed, offset) in zip(trail.draws, places, strict=True):
            call.attrs["seed"], call.attrs["offset"] = seed, offset
        if self.bound is None:
            return self._run_first()
        bound = self.bound
        leaves = [
            x.t._array if type(x) is Leaf else window_of(x.leaf.t._array, x.value.shape, x.value.dtype, x.strides, x.first) for x in self.leaves
        ]  # fmt: skip
        for k, call, name in bound.drawn:
            bound.numbers[k] = call.attrs[name]
        try:
            found = bound.plan.run(leaves, bound.numbers, self.called)
        except Exception:
            return None
        if not all([_is_own(x, v) for x, v in zip(found, bound.wanted, strict=True)]) or len(set(map(id, [*found, *leaves]))) != len(found) + len(leaves):
            return self._stored(leaves, found)
        return dict(zip(self.numbers, found, strict=True))

    def _run_first(self) -> dict[int, Any] | None:
        """The same, and what the next time needs."""
        trail = self.trail
        sources = {leaf.value: leaf for leaf in trail.leaves}
        sources.update({d.value: d for d in trail.derived})
        self.bound = bound = plan_of(self.calls, self.wanted)
        self.leaves = [sources[v] for v in bound.leaves]
        self.called = [(c.at, c.who) for c in self.calls]
        number_of = {v: n for n, v in self.values.items()}
        self.numbers = [number_of[v] for v in bound.wanted]
        return self.run([(c.attrs["seed"], c.attrs["offset"]) for c, _ in trail.draws])

    def _stored(self, leaves: Sequence[Any], found: Sequence[Any]) -> dict[int, Any]:
        """Results in memory of their own, laid as tensors look at them."""
        storages = {n: _storage(v) for n, v in zip(self.numbers, self.bound.wanted, strict=True)}
        try:
            for value, array in zip((*self.bound.leaves, *self.bound.wanted), (*leaves, *found), strict=True):
                value.array = array
            store_results(list(storages.values()), self.bound.leaves, {})
        finally:
            for value in (*self.bound.leaves, *self.bound.wanted):
                value.array = None
        return {n: s.real for n, s in storages.items()}


def _is_own(array: Any, value: Value) -> bool:
    """Whether a result owns its memory, and lies as tensors look at it."""
    return type(array) is np.ndarray and array.base is None and array.strides == tuple([s * array.itemsize for s in value.strides])


def _storage(value: Any) -> PendingStorage:
    made = PendingStorage(value.device, 0, value.strides, value, None)
    made.fixed = True
    return made
