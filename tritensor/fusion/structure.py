"""Structure of a graph: a key that says all that its plan hangs on, and the arrays and numbers that it does not; plans are kept by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from tritensor.cuda.streams.capture import CapturedOffset
from tritensor.fusion.graph import BACKWARD, FORWARD, Call, Value, Window
from tritensor.fusion.plan import Plan, plan
from tritensor.fusion.program.templates import drawn_attributes, seed_places, uniform
from tritensor.fusion.running import run_calls
from tritensor.ground.thread_state import here
from tritensor.ops import replay
from tritensor.ops.table import Op

KEPT = 256  # plans; when there are more, all are dropped


class Structure(NamedTuple):
    """key: equal for graphs that one plan serves. values: all that the graph's calls read and make, as the key numbers them; wanted: those that outlive it.
    numbers: what only reaches kernels, seeds and offsets; drawn: which of them are attributes of which calls."""

    key: Any
    values: list[Value]
    wanted: list[Value]
    numbers: list[Any]
    drawn: list[tuple[int, Call, str]]


_NONE: tuple[int, ...] = ()


def structure_of(calls: Sequence[Call], wanted: set[Value]) -> Structure:
    """The structure of a graph. Its key cannot be hashed where an argument cannot."""
    place: dict[Value, int] = {}
    numbers: list[Any] = []
    parts: list[Any] = []
    kept: list[Value] = []
    seeds: list[tuple[int, Call, str]] = []
    add = parts.append
    for call in calls:
        op, attrs = call.op, call.attrs
        free = call.kernels is not None or _uniform(op, call.corner, call.part)
        seeds_at: tuple[int, ...] = seed_places(op, call.part or 0, call.kernels is not None) or () if call.corner == BACKWARD else ()
        add(op)
        add(call.corner if call.part is None else call.part)
        for k, x in enumerate(call.inputs):
            kind = type(x)
            if kind is Value:
                n = place.get(x)
                if n is None:
                    n = place[x] = len(place)
                    add((x.shape, x.dtype, x.strides, x.device))
                add(n)
            elif kind is float or kind is int:
                if k in seeds_at and call.drawn_by is not None:
                    seeds.append((len(numbers), call.drawn_by, "seed" if k == seeds_at[0] else "offset"))
                numbers.append(x)
                add(kind if k in seeds_at else number_part(x) if free else (kind, x, str(x)) if not x else (kind, x))
            else:
                add(_part(x, place, parts))
        if attrs:
            drawn = drawn_attributes(op, call.corner)
            if drawn:
                seeds += [(len(numbers) + k, call, name) for k, name in enumerate(drawn)]
                numbers += [attrs[k] for k in drawn]
                attrs = {k: v for k, v in attrs.items() if k not in drawn}
            add(replay.attributes_part(attrs))
        if call.kernels:
            for function, args, picks in call.kernels:
                free, seeds_at = uniform(op, function), seed_places(op, function) or _NONE
                add((function, picks))
                for k, x in enumerate(args):
                    if type(x) is float or type(x) is int:
                        if k in seeds_at and call.drawn_by is not None:
                            seeds.append((len(numbers), call.drawn_by, "seed" if k == seeds_at[0] else "offset"))
                        numbers.append(x)
                        add(type(x) if k in seeds_at else number_part(x) if free else (type(x), x, str(x)))
                    else:
                        add(_part(x, place, parts))
        for y in call.results:
            if y is None:
                add(None)
                continue
            place[y] = len(place)
            if y in wanted:
                kept.append(y)
                add((y.strides, y.fixed, True))
            elif call.corner != FORWARD:
                add((y.shape, y.dtype, y.strides, y.fixed))
            else:
                add(y.fixed)
    return Structure(tuple(parts), list(place), kept, numbers, seeds)


def number_part(x: float) -> Any:
    """A number that only reaches kernels as it stands in a key: its type and, as patterns ask for these, whether it is 0, below 0, or not finite."""
    return type(x) if 0 < x < math.inf else (type(x), "-" if -math.inf < x < 0 else str(x))


def _part(x: Any, place: dict[Value, int], parts: list[Any]) -> Any:
    """Any other argument as it stands in a key."""
    kind = type(x)
    if kind is Value:
        n = place.get(x)
        if n is None:
            n = place[x] = len(place)
            parts.append((x.shape, x.dtype, x.strides, x.device))
        return n
    if kind is Window:
        return (Window, _part(x.value, place, parts), x.shape, x.dtype, x.strides, x.first)
    if kind is tuple:
        return tuple(
            [_part(y, place, parts) if type(y) is Value or type(y) is Window or type(y) is tuple else replay.value_part(y) for y in x]
        )
    return replay.value_part(x)


@cache
def _uniform(op: Op, corner: str, part: int | None) -> bool:
    """Whether numbers among a call's arguments only reach kernels."""
    if corner == FORWARD:
        return uniform(op, "forward")
    backward = getattr(op, "backward", None)
    return backward is not None and uniform(op, 0 if backward.joint else part or 0)


class Bound(NamedTuple):
    """A plan for a graph: `leaves` are the values whose arrays it is given, in order, `wanted` those that it computes. It may be run again when leaves have
    other arrays, of the same layouts, or calls other seeds: `drawn` says which of the numbers are attributes of which calls."""

    plan: Plan
    leaves: list[Value]
    numbers: list[Any]
    drawn: list[tuple[int, Call, str]]
    wanted: list[Value]

    def numbers_now(self) -> list[Any]:
        """The numbers with the calls' seeds of now: another list where there are seeds."""
        if not self.drawn:
            return self.numbers
        found = list(self.numbers)
        for k, call, name in self.drawn:
            found[k] = call.attrs[name]
        return found

    def compute(self, calls: Sequence[Call]) -> dict[Value, Exception]:
        """Give the wanted values their arrays. Gives what could not be computed, with the error of the call that failed, as `run_calls`: when one does, all
        run one by one, so that what does not hang on it is computed all the same."""
        numbers = self.numbers_now()
        # each replay of a graph draws anew, from memory that no number tells
        if here.capture is not None and CapturedOffset in map(type, numbers):
            return run_calls(calls, set(self.wanted))
        try:
            found = self.plan.run([v.array for v in self.leaves], numbers, [(c.at, c.who) for c in calls])
        except Exception:
            failed = run_calls(calls, set(self.wanted))
            if not failed:
                raise
            return failed
        for value, array in zip(self.wanted, found, strict=True):
            value.array = array
        return {}


_plans: dict[Any, tuple[Plan, tuple[int, ...]]] = {}


def plan_of(calls: Sequence[Call], wanted: set[Value]) -> Bound:
    """The plan of a graph, that of an earlier one of the same structure where there was one."""
    table = _plans
    structure = structure_of(calls, wanted)
    try:
        found = table.get(structure.key)
    except TypeError:  # a list among the attributes
        return _bound(*_planned(calls, structure), structure)
    if found is None:
        found = _planned(calls, structure)
        if len(table) >= KEPT:
            table.clear()
        table[structure.key] = found
    return _bound(*found, structure)


def _planned(calls: Sequence[Call], structure: Structure) -> tuple[Plan, tuple[int, ...]]:
    """A new plan, and which of the graph's values are its leaves."""
    made = plan(calls, structure.wanted)
    place = {v: k for k, v in enumerate(structure.values)}
    leaves = tuple([place[v] for v in made.read])
    made.read = ()  # it outlives the graph
    return made, leaves


def _bound(made: Plan, leaves: tuple[int, ...], structure: Structure) -> Bound:
    values = structure.values
    return Bound(made, [values[k] for k in leaves], structure.numbers, structure.drawn, structure.wanted)


def compute(calls: Sequence[Call], wanted: set[Value]) -> dict[Value, Exception]:
    """Give the wanted values of a graph their arrays, by its plan: see Bound."""
    return plan_of(calls, wanted).compute(calls)


def _forget() -> None:
    """Drop all plans: an op was replaced, or a setting that corners depend on has changed."""
    global _plans
    _plans = {}


replay.when_forgotten.append(_forget)
