"""`explain`: one run of a function, told: its segments and what ended each, what was fused, what was not and why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tritensor.compilation.backends import meaning_of
from tritensor.compilation.calls import in_region, innermost
from tritensor.compilation.optimized_module import OptimizedModule
from tritensor.compilation.printed import HEAD
from tritensor.compilation.watching import SegmentReport, watch
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation import segment as segments
from tritensor.lazy_evaluation.known.cursor import forget_paths
from tritensor.lazy_evaluation.modes import close_if_left_open


class BreakReason(NamedTuple):
    """Why a segment ended before the function did: PyTorch's name for that is a graph break. user_stack: the user's line."""

    reason: str
    user_stack: list[str]
    graph_break: bool = True


class Explanation:
    """What `explain` found; printed, it is a report. `segments` holds a SegmentReport each, `result` what the function gave.

    graph: the calls of all segments as Python that runs; graphs: each by itself. The other attributes are those of PyTorch's ExplainOutput.
    """

    def __init__(self, name: str, notes: list[str], found: list[SegmentReport], result: Any, seconds: float) -> None:
        self.name, self.notes, self.segments, self.result, self.seconds = name, notes, found, result, seconds
        self.graphs = [s.graph for s in found]
        self.graph_count = len(found)
        self.graph_break_count = max(len(found) - 1, 0)
        self.break_reasons = [BreakReason(s.why, [s.line]) for s in found[:-1]]
        self.ops_per_graph = [list(s.calls) for s in found]
        self.op_count = sum([len(s.calls) for s in found])
        self.out_guards: list[Any] = []  # nothing is guarded
        self.compile_times = f"planning {sum([s.planned for s in found]):.4f} s of {seconds:.4f} s"

    @property
    def graph(self) -> str:
        """The calls as Python that runs, a function for each segment: f1, f2, ..."""
        bodies = [g.code.removeprefix(HEAD).replace("def f(", f"def f{k + 1}(", 1) for k, g in enumerate(self.graphs)]
        return HEAD + "".join(bodies)

    def __str__(self) -> str:
        known = sum([s.known for s in self.segments])
        lines = [
            f"{self.name}: {self.graph_count} segments, {self.op_count} calls, {self.seconds:.4f} s, "
            f"of it planning {sum([s.planned for s in self.segments]):.4f} s; {known} plans were known",
            *self.notes,
        ]
        for k, s in enumerate(self.segments):
            lines += ["", f"segment {k + 1}: {len(s.calls)} calls until {s.why}, at {s.line}"]
            lines += [f"  {line}" for line in _told(s)]
        return "\n".join(lines)

    __repr__ = __str__


def _told(s: SegmentReport) -> list[str]:
    """The lines on one segment."""
    lines = []
    if s.needed < len(s.calls):
        lines.append(f"{len(s.calls) - s.needed} calls were not computed: nobody holds what they lead to")
    lines.append(
        f"as called {s.before.launches} launches, {_amount(s.before.bytes)}; fused {s.after.launches} launches, {_amount(s.after.bytes)}"
    )
    for g in s.groups:
        lines.append(f"  {'fused' if g.fused else 'alone'}  {_amount(g.bytes):>9}  {_names(g.calls)}")
    apart = Counter(s.apart)
    if apart:
        lines.append("not fused:")
        lines += [f"  {maker} -> {reader}: {why}" + (f" ({n} times)" if n > 1 else "") for (maker, reader, why), n in apart.items()]
    return lines


def _names(calls: tuple[str, ...]) -> str:
    """The names of calls, in few words."""
    counted = Counter(calls)
    return ", ".join([name + (f" x{n}" if n > 1 else "") for name, n in counted.items()])


def _amount(n: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`explain(f)(*args)` runs f once as `compile(f)` would, for the first time, and gives an Explanation: print it. f is a function or a module, compiled
    or not. Arguments that stand here already are f's: the older way to call it, which gives the Explanation at once.

    >>> def f(x):
    ...     return (x * 2 + 1).sum()
    >>> found = tt.compiler.explain(f)(tt.ones(3))
    >>> found.graph_count, found.op_count, found.segments[0].after.launches
    (1, 3, 1)
    """
    settings = f._settings if isinstance(f, OptimizedModule) else None
    bare = innermost(f)
    name = getattr(bare, "__name__", type(bare).__name__)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        if here.segment is not None:
            here.segment.settle()
        forget_paths()
        found: list[SegmentReport] = []
        watcher = watch(found.append, lambda: here.own_segment)
        start = time.perf_counter()
        segments.watchers.append(watcher)
        try:
            result = in_region(bare)(*args, **kwargs)
            close_if_left_open(f"the end of {name}; its results require grad, and what follows would be fused with it")
        finally:
            segments.watchers.remove(watcher)
        return Explanation(name, [] if settings is None else _notes(settings), found, result, time.perf_counter() - start)

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


def _notes(settings: Any) -> list[str]:
    """What of the settings means something else here, or nothing yet."""
    notes = [meaning_of(settings.backend)]
    if settings.fullgraph:
        notes.append("fullgraph=True: Python runs at each call all the same, and a value that is asked for ends a segment without an error")
    if settings.mode not in (None, "default"):
        notes.append(f'mode="{settings.mode}" runs as "default": Python runs at each call, and nothing is captured or tuned')
    return [n for n in notes if n]
