"""Rewriting of a graph before it is partitioned: where calls are what a pattern describes, its calls take their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tritensor.fusion.graph import FORWARD, Call, DerivedNumber, Value
from tritensor.fusion.patterns import attention, losses, softmax
from tritensor.fusion.patterns.match import Match, Mismatch, Uses, is_number
from tritensor.fusion.program.dataflow import derived_attributes
from tritensor.fusion.program.templates import drawn_attributes
from tritensor.ops import replay


class Pattern(NamedTuple):
    """A pattern: its name, the op of the call that it begins at, and what it makes of that."""

    name: str
    op: str
    rewrite: Callable[[Match], None]


PATTERNS = (
    Pattern("attention", "matmul", attention.attention),
    Pattern("softmax", "div", softmax.softmax),
    Pattern("cross_entropy", "nll_loss", losses.cross_entropy),
    Pattern("cross_entropy", "neg", losses.cross_entropy_of_logs),
    Pattern("cross_entropy", "sub", losses.cross_entropy_of_sums),
    Pattern("linear_cross_entropy", "cross_entropy", losses.linear_cross_entropy),
)
_on: frozenset[str] = frozenset([p.name for p in PATTERNS])


@contextmanager
def only(*names: str) -> Iterator[None]:
    """Rewrite by the patterns of these names alone, in all threads; by none without a name."""
    global _on
    known = {p.name for p in PATTERNS}
    if unknown := set(names) - known:
        raise ValueError(f"patterns: {', '.join(sorted(unknown))} is none of {', '.join(sorted(known))}; give some of these")
    before, _on = _on, frozenset(names)
    replay.forget()  # plans that were made with others
    try:
        yield
    finally:
        _on = before
        replay.forget()


class NumberSource(NamedTuple):
    """Where a number of rewritten calls comes from: `by` of the graph's numbers at these places; by None: the one number itself."""

    by: Callable[..., Any] | None
    places: tuple[int, ...]

    def value(self, numbers: Sequence[Any]) -> Any:
        """It, of the graph's numbers."""
        return numbers[self.places[0]] if self.by is None else self.by(*[numbers[k] for k in self.places])


class Rewritten(NamedTuple):
    """A graph's calls after all patterns.

    places: of each call that of the graph's whose place it takes; behind them how many the graph has. numbers: where those of the calls come from, None for
    a graph that is as it was. patterns: what was found, as the name of a pattern and the places of the calls that are gone.
    """

    calls: Sequence[Call]
    places: Sequence[int]
    numbers: list[NumberSource] | None
    patterns: list[tuple[str, tuple[int, ...]]]


def rewritten(calls: Sequence[Call], wanted: Sequence[Value]) -> Rewritten:
    """A graph's calls with what patterns put in the place of some. It hangs on the graph's structure alone."""
    begin: dict[str, list[Pattern]] = {}
    for p in PATTERNS:
        if p.name in _on:
            begin.setdefault(p.op, []).append(p)
    places = {c: k for k, c in enumerate(calls)}
    now, found = list(calls), []
    kept = set(wanted)
    while any([c.op.name in begin for c in now]) and (matches := _matches(now, kept, begin)):
        for name, m in matches:
            places.update([(call, places[before]) for before, call in m.new])
            found.append((name, tuple(sorted({places[c] for c in m.parts}))))
        now = _replaced(now, [m for _, m in matches])
    if not found:
        return Rewritten(calls, range(len(calls) + 1), None, [])
    return Rewritten(now, [*[places[c] for c in now], len(calls)], _sources(calls, now), found)


def _matches(calls: Sequence[Call], wanted: set[Value], begin: dict[str, list[Pattern]]) -> list[tuple[str, Match]]:
    """Matches of patterns among calls, no two of which take the place of the same call: a later one, on what is there then, may come of the rest."""
    uses = Uses(calls, wanted)
    gone: set[Call] = set()
    found = []
    for call in calls:
        if call.corner != FORWARD or call in gone:
            continue
        for pattern in begin.get(call.op.name, ()):
            m = Match(uses, call)
            try:
                pattern.rewrite(m)
                m.check()
            except Mismatch:
                continue
            if gone.isdisjoint(m.parts):
                gone.update(m.parts)
                found.append((pattern.name, m))
                break
    return found


def _replaced(calls: Sequence[Call], matches: Sequence[Match]) -> list[Call]:
    """The calls with matches' new ones, without those that these replace."""
    gone = {c for m in matches for c in m.parts}
    new: dict[Call, list[Call]] = {}
    for m in matches:
        for before, call in m.new:
            new.setdefault(before, []).append(call)
    made: list[Call] = []
    for call in calls:
        made += new.get(call, ())
        if call not in gone:
            made.append(call)
    return made


def _sources(before: Sequence[Call], after: Sequence[Call]) -> list[NumberSource]:
    """Where the numbers of calls come from, those of the graph before counted as its structure counts them."""
    first: dict[Call, int] = {}
    at: dict[tuple[Call, int], int] = {}
    count = 0
    for call in before:
        first[call] = count
        for k, x in enumerate(call.inputs):
            if is_number(x):
                at[call, k], count = count, count + 1
        count += len(drawn_attributes(call.op, call.corner)) + sum([is_number(x) for _, args, _ in call.kernels or () for x in args])
    ends = dict(zip(before, [*list(first.values())[1:], count], strict=True))
    found: list[NumberSource] = []
    for call in after:
        if call in first:
            found += [NumberSource(None, (k,)) for k in range(first[call], ends[call])]
            continue
        given = [x for x in call.inputs if is_number(x) or type(x) is DerivedNumber]
        for x in (*given, *[call.attrs[name] for name in (*drawn_attributes(call.op, call.corner), *derived_attributes(call))]):
            if type(x) is DerivedNumber:
                found.append(NumberSource(x.by, tuple([at[f] for f in x.of])))
            else:
                found.append(NumberSource(_constant(x), ()))
    return found


def _constant(x: Any) -> Callable[[], Any]:
    return lambda: x
