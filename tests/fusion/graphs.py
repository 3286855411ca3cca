"""Graphs of programs: what they note under `lazy()`, the plan of that, and its values beside those of the calls one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tritensor as tt
from tritensor.fusion.graph import Call, Value, needed
from tritensor.fusion.plan import Opaque, Plan, places_in
from tritensor.fusion.running import run_calls
from tritensor.fusion.structure import plan_of
from tritensor.fusion.tapes import Fused
from tritensor.ground import thread_state
from tritensor.ops.array import to_host


class Graph:
    """The calls that a program notes, and those of its values that somebody holds at the end."""

    def __init__(self, program: Callable[[], Any]) -> None:
        with tt.lazy():
            self.held = program()  # what is dropped by then need not be computed
            segment = thread_state.here.segment
            assert segment is not None
            if segment.cursor.follows:  # a program that was seen before has not been noted
                segment.cursor.leave()
            held = [s for mark in segment.storages if (s := mark()) is not None and s.value is not None]
            self.wanted: set[Value] = {s.value for s in held}
            self.calls: list[Call] = needed(list(segment.calls), self.wanted)
            made = {v for c in self.calls for v in c.results}
            self.wanted &= made
            self.bound = plan_of(self.calls, self.wanted)
            self.plan = self.bound.plan
            self.by_plan = [
                _values(x)
                for x in self.bound.plan.run([v.array for v in self.bound.leaves], self.bound.numbers, [(c.at, c.who) for c in self.calls])
            ]
            assert not run_calls(self.calls, self.wanted)
            self.by_calls = [_values(v.array) for v in self.bound.wanted]

    @property
    def groups(self) -> list[list[str]]:
        """The calls of each fused group."""
        return [[self.calls[k].name for k in g.calls if k < len(self.calls)] for g in self.plan.groups]

    @property
    def alone(self) -> list[str]:
        """The calls that run as they are."""
        return [i.name for i in self.plan.items if type(i) is Opaque]

    def check(self, tolerance: float = 2e-5, least: float = 1e-30) -> Graph:
        """Raise AssertionError where the plan gives other values than the calls; they may differ by `tolerance` of the largest, or of `least`."""
        check_order(self.plan)
        for a, b in zip(self.by_plan, self.by_calls, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            if a.dtype.kind in "biu":
                assert np.array_equal(a, b)
                continue
            x, y = a.astype(np.float64), b.astype(np.float64)
            assert np.array_equal(np.isnan(x), np.isnan(y))
            size = np.abs(np.where(np.isfinite(y), y, 0)).max(initial=least)
            with np.errstate(invalid="ignore"):
                assert np.all((x == y) | np.isnan(y) | (np.abs(x - y) <= tolerance * size)), (a, b)
        return self


def check_order(plan: Plan) -> None:
    """Raise AssertionError where an item of a plan reads what is not there yet, or is gone."""
    there = set(range(plan.given))
    for item, last in zip(plan.items, plan.last, strict=True):
        read = set(item.reads) if type(item) is Fused else plan_reads(item)
        assert read <= there, (item, read - there)
        there |= {o.place for o in item.outs} if type(item) is Fused else set(item.outs)
        there -= set(last)
    assert {w.place for w in plan.wanted} <= there


def plan_reads(item: Any) -> set[int]:
    """The places that a call of a plan reads."""
    return set(places_in(item.given))


def _values(x: Any) -> np.ndarray:
    return np.array(to_host(x))
