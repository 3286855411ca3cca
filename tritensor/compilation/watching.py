"""Watching of segments as they run: what ended each, what it called, and what was fused."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tritensor.compilation.printed import Graph
from tritensor.fusion import structure
from tritensor.fusion.graph import Call, Value, Window, needed
from tritensor.fusion.plan import Opaque
from tritensor.fusion.tapes import Fused
from tritensor.ground.call_site import called_name, user_line


class Traffic(NamedTuple):
    """How many kernels or loops run, and the bytes of the arrays that they read and write."""

    launches: int
    bytes: int


class Ran(NamedTuple):
    """One group of a plan: the calls that it is made of, and its traffic."""

    calls: tuple[str, ...]
    fused: bool
    bytes: int


class SegmentReport:
    """One segment that has run.

    why: what ended it; line: the user's line that did. calls: names of all that were noted; needed: how many of them were computed, as somebody held
    what they lead to. before, after: the traffic of these as they were called, and as they were fused. groups: what ran, in order. apart: (maker, reader, why)
    of neighbours that were not fused. known: whether the plan was there already. planned, seconds: what planning took, and planning and running together.
    """

    def __init__(self, why: str, line: str, calls: list[Call], outlive: dict[Value, None]) -> None:
        wanted = set(outlive)
        self.why, self.line = why, line
        self.calls = [c.name for c in calls]
        run = needed(calls, wanted)
        self.needed = len(run)
        self.graph = Graph(calls, list(outlive))
        begun = time.perf_counter()
        self.known = _is_planned(run, wanted)
        plan = structure.plan_of(run, wanted).plan
        self.planned = time.perf_counter() - begun
        self.seconds = 0.0
        self.before = Traffic(len(run), sum([_bytes_of(c) for c in run]))
        self.groups = [_ran(item, run) for item in plan.items]
        self.after = Traffic(len(self.groups), sum([g.bytes for g in self.groups]))
        self.apart = [
            ("a copy" if r.maker < 0 else run[r.maker].name, "a copy" if r.reader < 0 else run[r.reader].name, r.why) for r in plan.why
        ]


def watch(told: Callable[[SegmentReport], Any], thread: Any = None) -> Callable[[Any, str], Callable[[], None]]:
    """A watcher of segments, which is told of each that has run; with `thread`, a function that gives a segment, of that one alone."""

    def begun(segment: Any, why: str) -> Callable[[], None]:
        calls = segment.waits()
        if not calls or (thread is not None and thread() is not segment):
            return _nothing
        held = segment.held() if not segment.cursor.follows else ()
        wanted = dict.fromkeys([s.value for s in held]) or dict.fromkeys([v for c in calls for v in c.results if v is not None])
        report = SegmentReport(why or f"{_who()} asks for a value", user_line(), calls, wanted)
        del calls, held, wanted
        start = time.perf_counter()

        def ended() -> None:
            report.seconds = report.planned + time.perf_counter() - start
            told(report)

        return ended

    return begun


_WORDS = {
    "_repr": "print or repr", "__repr__": "print or repr", "__format__": "format", "__bool__": "a condition (bool)", "__float__": "float()",
    "__int__": "int()", "__index__": "an index or a size", "__array__": "numpy", "__iter__": "a loop over it", "__contains__": "in",
}  # fmt: skip


def _who() -> str:
    """What the user's line called that asks."""
    name = called_name()
    return _WORDS.get(name, name)


def _nothing() -> None:
    """The end of what is not watched."""


def _is_planned(calls: list[Call], wanted: set[Value]) -> bool:
    try:
        return structure.structure_of(calls, wanted).key in structure._plans
    except TypeError:  # which no key can be made of
        return False


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(dtype.itemsize)


def _bytes_of(call: Call) -> int:
    """What a call by itself reads and writes."""
    read = sum([_size(x.shape, x.dtype) for x in _arrays(call.inputs)])
    return read + sum([_size(y.shape, y.dtype) for y in call.results if y is not None])


def _arrays(given: Any) -> Any:
    for x in given:
        if type(x) is Value or type(x) is Window:
            yield x
        elif type(x) is tuple:
            yield from _arrays(x)


def _ran(item: Fused | Opaque, calls: list[Call]) -> Ran:
    names = tuple([calls[k].name for k in item.calls])
    if isinstance(item, Fused):
        return Ran(names, True, sum([_size(x.shape, x.dtype) for x in (*item.inputs, *item.outs)]))
    return Ran(names, False, _bytes_of(calls[item.calls[0]]))
