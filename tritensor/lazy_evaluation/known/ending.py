"""Ending: what runs when a path ends at some record while so and so is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.fusion.graph import Value, needed
from tritensor.fusion.structure import plan_of
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known.records import Derived, Hand, Leaf, Trail
from tritensor.lazy_evaluation.storing import store_results
from tritensor.ops.lazy_array import PendingStorage, window_of


class Ending:
    """The plan of a path's calls for the results that are held, made once. hands: those, and what they are views of; storages: of each the number of its
    memory. tracked: whether some of them has a node. may_run: whether those are of graphs that a backward of the path has used up, as no plan keeps what
    others would save, and none is a view of what no record has made."""

    def __init__(self, trail: Trail, held: Sequence[Hand]) -> None:
        self.trail = trail
        self.hands = list(dict.fromkeys([*held, *[x for h in held for x in (h.base, h.twin) if x is not None]]))
        self.storages = [h.storage for h in self.hands]
        self.tracked = any([h.tracked for h in self.hands])
        self.may_run = all([(not h.tracked or id(h) in trail.freed) and not h.lost for h in self.hands])
        self.values = {n: trail.held[n] for n in (*self.storages, *[n for _, n in trail.adopted])}
        self.wanted = set(self.values.values())
        self.calls = needed(trail.calls, self.wanted)
        self.bound: Any = None
        self.leaves: list[Any] = []  # what the plan is given, Leaf or Derived, in order
        self.numbers: list[int] = []  # of the memory that each of its results is, where no two hold the same
        self.called: list[Any] = []
        self.copies: list[Any] = []  # Leaf or Derived, of which a result is a copy
        self.table: Any = (
            None  # the machine code that makes all results, each in memory of its own that lies as it is to, and (number, place) of these
        )
        self.made: list[tuple[int, int]] = []
        # where the table does it all: the place of each hand's array, and which of the path's it is
        self.handing: list[tuple[Hand, int, int]] | None = None if self.calls or self.values else []
        self.plain = not trail.versions and all([h.twin is None and h.base is None for h in self.hands])

    def run(self, places: Sequence[tuple[int, int]], homes: Mapping[int, Any]) -> dict[int, Any] | None:
        """The arrays of the memory that is held, by its number; None where a call fails, which then is to be called by itself. places: of random numbers.
        homes: memory that there is and that is written, by its number."""
        trail = self.trail
        if trail.draws and here.capture is not None:  # each replay of the graph draws anew, which a plan does not see to
            return None
        if trail.draws:
            for (call, _), (seed, offset) in zip(trail.draws, places, strict=True):
                call.attrs["seed"], call.attrs["offset"] = seed, offset
        if not self.calls and not self.values:
            return {}
        if self.bound is None:
            return self._run_first(homes)
        bound = self.bound
        leaves = [_there(x) for x in self.leaves]
        numbers = bound.numbers_now()
        if self.table is not None and not homes:
            arrays = [*leaves, *[None] * (bound.plan.places - len(leaves))]
            self.table.run(arrays, numbers)
            return {n: arrays[place] for n, place in self.made}
        try:
            found = bound.plan.run(leaves, numbers, self.called)
        except Exception:
            return None
        own = not homes and len(found) == len(self.values) and all([_is_own(x, v) for x, v in zip(found, bound.wanted, strict=True)])
        if not own or len(set(map(id, [*found, *leaves]))) != len(found) + len(leaves):
            return self._stored(leaves, found, homes)
        self.table = bound.plan.table
        if self.table is not None:
            self.made = [(n, w.place) for n, w in zip(self.numbers, bound.plan.wanted, strict=True)]
            simple = self.plain and all([type(x) is Leaf for x in self.leaves]) and all([h.whole for h in self.hands])
            if simple and not (self.tracked or trail.adopted or trail.draws):
                place = dict(self.made)
                self.handing = [(h, place[h.storage], trail.hands.index(h)) for h in self.hands]
        return dict(zip(self.numbers, found, strict=True))

    def run_quick(self) -> list[Any]:
        """The arrays of the plan, by place, where `handing` says which of them hands get."""
        if not self.handing:
            return []
        arrays = [x.t._array for x in self.leaves]
        arrays += [None] * (self.bound.plan.places - len(arrays))
        self.table.run(arrays, self.bound.numbers)
        return arrays

    def _run_first(self, homes: Mapping[int, Any]) -> dict[int, Any] | None:
        """The same, and what the next time needs."""
        trail = self.trail
        sources: dict[Value, Leaf | Derived] = {leaf.value: leaf for leaf in trail.leaves}
        sources.update({d.value: d for d in trail.derived})
        self.bound = bound = plan_of(self.calls, self.wanted)
        self.leaves = [sources[v] for v in bound.leaves]
        self.called = [(c.at, c.who) for c in self.calls]
        number_of = {v: n for n, v in self.values.items()}
        self.numbers = [number_of[v] for v in bound.wanted]
        self.copies = [sources[v] for v in self.wanted if v in sources]
        return self.run([(c.attrs["seed"], c.attrs["offset"]) for c, _ in trail.draws], homes)

    def _stored(self, leaves: Sequence[Any], found: Sequence[Any], homes: Mapping[int, Any]) -> dict[int, Any]:
        """Results in memory of their own, laid as tensors look at them."""
        storages = {n: _storage(v) for n, v in self.values.items()}
        for n, storage in homes.items():
            storages[n].home = storage.home
        try:
            for value, array in zip((*self.bound.leaves, *self.bound.wanted), (*leaves, *found), strict=True):
                value.array = array
            for x in self.copies:
                x.value.array = _there(x)
            store_results(list(storages.values()), [*self.bound.leaves, *[x.value for x in self.copies]], {})
        finally:
            for value in (*self.bound.leaves, *self.bound.wanted, *[x.value for x in self.copies]):
                value.array = None
        return {n: s.real for n, s in storages.items()}


def _there(x: Leaf | Derived) -> Any:
    """The array of what a path reads, in the run of now."""
    if isinstance(x, Leaf):
        return x.memory
    return window_of(x.leaf.memory, x.value.shape, x.value.dtype, x.strides, x.first)


def _is_own(array: Any, value: Value) -> bool:
    """Whether a result owns its memory, and lies as tensors look at it."""
    return type(array) is np.ndarray and array.base is None and array.strides == tuple([s * array.itemsize for s in value.strides])


def _storage(value: Any) -> PendingStorage:
    made = PendingStorage(value.device, 0, value.strides, value, None)
    made.fixed = True
    return made
