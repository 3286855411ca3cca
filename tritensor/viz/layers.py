"""Where the boxes of a directed graph go: layers, an order in each that crosses few edges, places from left to right (Sugiyama, Tagawa, Toda 1981)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SWEEPS = 8  # down and up over the layers, each time putting a node at the mean of its neighbours
GAP_X, GAP_Y = 18.0, 34.0
Edge = tuple[int, int]


@dataclass
class Layout:
    """Centres of the boxes, the points that each edge passes, and the size of the whole."""

    at: dict[int, tuple[float, float]] = field(default_factory=dict)
    routes: dict[Edge, list[tuple[float, float]]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def laid_out(sizes: Mapping[int, tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Place boxes of these widths and heights, edges leading downwards. The edges must have no circle."""
    edges = list(dict.fromkeys(edges))
    rank = _ranks(sizes, edges)
    spans = dict(sizes)
    rows: list[list[int]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for n, r in rank.items():
        rows[r].append(n)
    chains = _chains(edges, rank, rows, spans)
    below: dict[int, list[int]] = {n: [] for n in spans}
    above: dict[int, list[int]] = {n: [] for n in spans}
    for chain in chains.values():
        for a, b in zip(chain, chain[1:], strict=False):
            below[a].append(b)
            above[b].append(a)
    _order(rows, above, below)
    x = _places(rows, spans, above, below)
    return _drawn(rows, spans, x, chains, sizes)


def _ranks(sizes: Mapping[int, tuple[float, float]], edges: Sequence[Edge]) -> dict[int, int]:
    """The layer of each node: below all that leads to it, and a source right above what it leads to."""
    below: dict[int, list[int]] = {n: [] for n in sizes}
    waiting = dict.fromkeys(sizes, 0)
    for a, b in edges:
        below[a].append(b)
        waiting[b] += 1
    sources = {n for n, w in waiting.items() if w == 0}
    rank = dict.fromkeys(sizes, 0)
    ready = [n for n in sizes if n in sources]
    for n in ready:
        for m in below[n]:
            rank[m] = max(rank[m], rank[n] + 1)
            waiting[m] -= 1
            if waiting[m] == 0:
                ready.append(m)
    if len(ready) != len(sizes):
        raise ValueError("laid_out: the edges lead in a circle; a graph of layers has none")
    for n in sources:
        if below[n]:
            rank[n] = min(rank[m] for m in below[n]) - 1
    return rank


def _chains(
    edges: Sequence[Edge], rank: Mapping[int, int], rows: list[list[int]], spans: dict[int, tuple[float, float]]
) -> dict[Edge, list[int]]:
    """Each edge as a chain of one step a layer, with points (boxes of no width) on the layers that it passes."""
    chains = {}
    free = max(spans, default=0) + 1
    for a, b in edges:
        chain = [a]
        for r in range(rank[a] + 1, rank[b]):
            spans[free] = (2.0, 0.0)
            rows[r].append(free)
            chain.append(free)
            free += 1
        chains[a, b] = [*chain, b]
    return chains


def _order(rows: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]) -> None:
    """Order each layer by the mean place of its neighbours, downwards and upwards in turn."""
    place = {n: float(i) for row in rows for i, n in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        beside = above if down else below
        for row in rows[1:] if down else rows[-2::-1]:
            mean = {n: sum(place[m] for m in beside[n]) / len(beside[n]) if beside[n] else place[n] for n in row}
            row.sort(key=mean.__getitem__)
            for i, n in enumerate(row):
                place[n] = float(i)


def _places(
    rows: list[list[int]], spans: Mapping[int, tuple[float, float]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]
) -> dict[int, float]:
    """Centres from left to right: each near the mean of its neighbours, none over another."""
    x: dict[int, float] = {}
    for row in rows:
        left = 0.0
        for n in row:
            x[n] = left + spans[n][0] / 2
            left += spans[n][0] + GAP_X
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        beside = above if down else below
        for row in rows if down else rows[::-1]:
            wanted = [sum(x[m] for m in beside[n]) / len(beside[n]) if beside[n] else x[n] for n in row]
            for n, at in zip(row, _apart(wanted, [spans[n][0] for n in row]), strict=True):
                x[n] = at
    return x


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Centres near the wanted ones, in the same order and a gap apart: groups that touch move to their mean (pool adjacent violators)."""
    offset, ahead = [], 0.0
    for i, w in enumerate(widths):
        ahead += 0.0 if i == 0 else widths[i - 1] / 2 + GAP_X + w / 2
        offset.append(ahead)
    groups: list[list[float]] = []  # sum, count
    for target, o in zip(wanted, offset, strict=True):
        groups.append([target - o, 1.0])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            last = groups.pop()
            groups[-1][0] += last[0]
            groups[-1][1] += last[1]
    bases = [total / count for total, count in groups for _ in range(int(count))]
    return [b + o for b, o in zip(bases, offset, strict=True)]


def _drawn(
    rows: list[list[int]], spans: Mapping[int, tuple[float, float]], x: Mapping[int, float], chains: Mapping[Edge, list[int]],
    sizes: Mapping[int, tuple[float, float]],
) -> Layout:  # fmt: skip
    """Places moved to begin at 0, heights of the layers added up."""
    out = Layout()
    left = min((x[n] - spans[n][0] / 2 for n in x), default=0.0)
    centre: dict[int, tuple[float, float]] = {}
    top = 0.0
    for row in rows:
        height = max((spans[n][1] for n in row), default=0.0)
        for n in row:
            centre[n] = (x[n] - left, top + height / 2)
        top += height + GAP_Y
    out.at = {n: centre[n] for n in sizes}
    out.width = max((centre[n][0] + spans[n][0] / 2 for n in centre), default=0.0)
    out.height = max(top - GAP_Y, 0.0)
    for (a, b), chain in chains.items():
        points = [centre[n] for n in chain]
        points[0] = (points[0][0], points[0][1] + spans[a][1] / 2)
        points[-1] = (points[-1][0], points[-1][1] - spans[b][1] / 2)
        out.routes[a, b] = points
    return out
