"""Ending: what runs when a path ends at some record while so and so is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.fusion.graph import needed
from tritensor.fusion.structure import plan_of
from tritensor.lazy_evaluation.known.records import Hand, Trail
from tritensor.lazy_evaluation.storing import store_results
from tritensor.ops.lazy_array import PendingStorage, window_of


class Ending:
    """The plan of a path's calls for the results that are held, made once. hands: those, and what they are views of; storages: of each the number of its
    memory. odd: whether some of them has a node, which no plan makes, or is a view of what no record has made."""

    def __init__(self, trail: Trail, held: Sequence[Hand]) -> None:
        self.trail = trail
        self.hands = list(dict.fromkeys([*held, *[h.base for h in held if h.base is not None]]))
        self.storages = [h.storage for h in self.hands]
        self.odd = any([h.tracked or h.lost for h in self.hands])
        self.values = {n: trail.held[n] for n in self.storages}
        self.wanted = set(self.values.values())
        self.calls = needed(trail.calls, self.wanted)
        self.bound: Any = None

    def run(self, places: Sequence[tuple[int, int]]) -> dict[int, Any] | None:
        """The arrays of the memory that is held, by its number; None where a call fails, which then is to be called by itself. places: of random numbers."""
        trail = self.trail
        for leaf in trail.leaves:
            leaf.value.array = leaf.t._array
        for d in trail.derived:
            d.value.array = window_of(d.leaf.t._array, d.value.shape, d.value.dtype, d.strides, d.first)
        for (call, _), (seed, offset) in zip(trail.draws, places, strict=True):
            call.attrs["seed"], call.attrs["offset"] = seed, offset
        storages = {n: _storage(v) for n, v in self.values.items()}
        try:
            if self.bound is None:
                self.bound = plan_of(self.calls, self.wanted)
            failed = self.bound.compute(self.calls)
            store_results(list(storages.values()), [leaf.value for leaf in trail.leaves], failed)
        finally:
            for v in self.wanted:
                if v.call is not None:
                    v.array = None
            for leaf in (*trail.leaves, *trail.derived):
                leaf.value.array = None
        return None if failed else {n: s.real for n, s in storages.items()}


def _storage(value: Any) -> PendingStorage:
    made = PendingStorage(value.device, 0, value.strides, value, None)
    made.fixed = True
    return made
