"""Layout of a directed graph: layers, an order in each that crosses few edges, positions from left to right (Sugiyama, Tagawa, Toda 1981)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SWEEPS = 8  # down and up over the layers, each time putting a node at the mean of its neighbours
GAP_X, GAP_Y = 18.0, 34.0
SPAN = 1  # layers that the uses of one source may lie apart before it is drawn again beside them
MAX_POINTS = 40_000  # through which edges are led around boxes; the longest edges of a graph with more go straight
Edge = tuple[int, int]
Point = tuple[float, float]


@dataclass
class Layout:
    """Centres of the boxes, the points that each edge passes, and the size of the whole; `copies` are further positions of sources."""

    at: dict[int, Point] = field(default_factory=dict)
    copies: dict[int, list[Point]] = field(default_factory=dict)
    routes: dict[Edge, list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def lay_out(sizes: Mapping[int, tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Place boxes of these widths and heights, edges leading downwards. The edges must have no circle.

    A source whose uses lie far apart, such as a weight of a recurrent layer, is placed beside each of them: one box and an edge over the whole
    picture for each use would hide everything else.
    """
    edges = list(dict.fromkeys(edges))
    split = _Split(sizes, edges)
    rank = _assign_layers(split)
    split.merge(rank)
    spans = {n: sizes[split.original[n]] for n in rank}
    rows: list[list[int]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for n, r in rank.items():
        rows[r].append(n)
    inner = split.edges()
    chains = _make_chains(inner, rank, rows, spans)
    below: dict[int, list[int]] = {n: [] for n in spans}
    above: dict[int, list[int]] = {n: [] for n in spans}
    for edge in inner:
        chain = chains[edge]
        for a, b in zip(chain, chain[1:], strict=False):
            if len(chain) > 2 or rank[b] == rank[a] + 1:  # the others go straight, and pull nothing
                below[a].append(b)
                above[b].append(a)
    _order_layers(rows, above, below)
    return _assemble(rows, spans, _place_boxes(rows, spans, above, below, _Spines(rows, spans, above, below)), chains, split)


class _Split:
    """A graph with a copy of each source for each use, until `merge` joins those that lie together."""

    def __init__(self, sizes: Mapping[int, tuple[float, float]], edges: Sequence[Edge]) -> None:
        self.below: dict[int, list[int]] = {n: [] for n in sizes}
        self.above: dict[int, list[int]] = {n: [] for n in sizes}
        for a, b in edges:
            self.below[a].append(b)
            self.above[b].append(a)
        self.original = {n: n for n in sizes}
        free = max(sizes, default=0) + 1
        self._sources = [n for n in sizes if not self.above[n] and len(self.below[n]) > 1]
        for n in self._sources:
            for target in self.below[n][1:]:
                self.original[free], self.below[free], self.above[free] = n, [target], []
                self.above[target][self.above[target].index(n)] = free
                free += 1
            self.below[n] = self.below[n][:1]

    def merge(self, rank: dict[int, int]) -> None:
        """Join the copies of a source whose uses are at most SPAN layers apart, at the layer above the first of them; the first keeps the number."""
        copies: dict[int, list[int]] = {n: [n] for n in self._sources}
        for n, source in self.original.items():
            if n != source:
                copies[source].append(n)
        for source, some in copies.items():
            some.sort(key=rank.__getitem__)
            target_of = {n: self.below[n][0] for n in some}
            names = iter([source, *[n for n in some if n != source]])
            first = -SPAN - 1
            keeper = source
            for n in some:
                self.below[n] = []
            for position, target in sorted((rank[n], target_of[n]) for n in some):
                if position > first + SPAN:
                    keeper, first = next(names), position
                    rank[keeper] = position
                self.below[keeper].append(target)
            for n in names:
                del rank[n], self.below[n], self.original[n]

    def edges(self) -> list[Edge]:
        return [(a, b) for a, some in self.below.items() for b in some]


def _assign_layers(graph: _Split) -> dict[int, int]:
    """The layer of each node: below its sources, and right above its first target where that makes edges shorter."""
    waiting = {n: len(some) for n, some in graph.above.items()}
    rank = dict.fromkeys(waiting, 0)
    ready = [n for n, w in waiting.items() if w == 0]
    for n in ready:
        for m in graph.below[n]:
            rank[m] = max(rank[m], rank[n] + 1)
            waiting[m] -= 1
            if waiting[m] == 0:
                ready.append(m)
    if len(ready) != len(rank):
        raise ValueError("laid_out: the edges lead in a circle; a graph of layers has none")
    light: set[int] = set()  # used once, and with sources of that kind alone: they come along with their target
    for n in ready:
        if len(graph.below[n]) == 1 and all(m in light for m in graph.above[n]):
            light.add(n)
    for n in reversed(ready):
        held = sum(m not in light for m in graph.above[n])
        if graph.below[n] and held < len(graph.below[n]):
            # fewer edges above it than below: moving it down shortens more than it lengthens
            rank[n] = min(rank[m] for m in graph.below[n]) - 1
    least = min(rank.values(), default=0)
    return {n: r - least for n, r in rank.items()}


def _make_chains(
    edges: Sequence[Edge], rank: Mapping[int, int], rows: list[list[int]], spans: dict[int, tuple[float, float]]
) -> dict[Edge, list[int]]:
    """Each edge as a chain of one step a layer, with points (boxes of no width) on the layers that it passes."""
    chains: dict[Edge, list[int]] = {}
    free = max(spans, default=0) + 1
    points = 0
    # short edges first: the long ones are left straight where there are too many
    for a, b in sorted(edges, key=lambda e: rank[e[1]] - rank[e[0]]):
        passed = range(rank[a] + 1, rank[b])
        points += len(passed)
        if points > MAX_POINTS:
            chains[a, b] = [a, b]
            continue
        for r in passed:
            spans[free + r - passed.start] = (2.0, 0.0)
            rows[r].append(free + r - passed.start)
        chains[a, b] = [a, *range(free, free + len(passed)), b]
        free += len(passed)
    return chains


def _order_layers(rows: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]) -> None:
    """Order each layer by the mean position of its neighbours, downwards and upwards in turn."""
    position = {n: float(i) for row in rows for i, n in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        beside = above if down else below
        for row in rows[1:] if down else rows[-2::-1]:
            if len(row) == 1:
                continue
            mean = {n: sum([position[m] for m in beside[n]]) / len(beside[n]) if beside[n] else position[n] for n in row}
            row.sort(key=mean.__getitem__)
            for i, n in enumerate(row):
                position[n] = float(i)


class _Spines:
    """Paths that are drawn straight: edges whose ends are each other's way to the farthest node above and below. The longest count most."""

    def __init__(
        self, rows: list[list[int]], spans: Mapping[int, tuple[float, float]], above: Mapping[int, list[int]],
        below: Mapping[int, list[int]],
    ) -> None:  # fmt: skip
        depth, height = _longest_paths(rows, above), _longest_paths(rows[::-1], below)
        real = {n: spans[n][1] > 0 for n in spans}  # of a path around boxes and one through them the latter
        up = {n: max(some, key=lambda m: (depth[m], real[m])) for n, some in above.items() if some}
        down = {n: max(some, key=lambda m: (height[m], real[m])) for n, some in below.items() if some}
        self.above = {n: m for n, m in up.items() if down.get(m) == n}
        self.below = {m: n for n, m in self.above.items()}
        head: dict[int, int] = {}
        length: dict[int, int] = {}
        for row in rows:
            for n in row:
                head[n] = head[self.above[n]] if n in self.above else n
                length[head[n]] = length.get(head[n], 0) + real[n]
        # squared, so that the main path stays straight against many short ones
        self.weight = {n: float(max(length[head[n]], 1)) ** 2 for n in head}


def _longest_paths(rows: list[list[int]], before: Mapping[int, list[int]]) -> dict[int, int]:
    """The number of steps to each node from the farthest one that leads to it."""
    steps: dict[int, int] = {}
    for row in rows:
        for n in row:
            steps[n] = 1 + max([steps[m] for m in before[n]], default=0)
    return steps


def _place_boxes(
    rows: list[list[int]], spans: Mapping[int, tuple[float, float]], above: Mapping[int, list[int]], below: Mapping[int, list[int]],
    spines: _Spines,
) -> dict[int, float]:  # fmt: skip
    """Centres from left to right: each below its spine, or near the mean of its neighbours; none over another."""
    x: dict[int, float] = {}
    for row in rows:
        left = 0.0
        for n in row:
            x[n] = left + spans[n][0] / 2
            left += spans[n][0] + GAP_X
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        beside, spine = (above, spines.above) if down else (below, spines.below)
        for row in rows if down else rows[::-1]:
            wanted = [x[spine[n]] if n in spine else sum([x[m] for m in beside[n]]) / len(beside[n]) if beside[n] else x[n] for n in row]
            if len(row) == 1:
                x[row[0]] = wanted[0]  # most rows of a plain chain: no groups to be made
                continue
            for n, at in zip(row, _separate(wanted, [spans[n][0] for n in row], [spines.weight[n] for n in row]), strict=True):
                x[n] = at
    return x


def _separate(wanted: list[float], widths: list[float], weights: list[float]) -> list[float]:
    """Centres near the wanted ones, in the same order and a gap apart: groups that touch move to their mean (pool adjacent violators)."""
    offset, ahead = [], 0.0
    for i, w in enumerate(widths):
        ahead += 0.0 if i == 0 else widths[i - 1] / 2 + GAP_X + w / 2
        offset.append(ahead)
    groups: list[list[float]] = []  # sum, weight, count
    for target, o, weight in zip(wanted, offset, weights, strict=True):
        groups.append([(target - o) * weight, weight, 1.0])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            last = groups.pop()
            for i in range(3):
                groups[-1][i] += last[i]
    bases = [total / weight for total, weight, count in groups for _ in range(int(count))]
    return [b + o for b, o in zip(bases, offset, strict=True)]


def _assemble(
    rows: list[list[int]], spans: Mapping[int, tuple[float, float]], x: Mapping[int, float], chains: Mapping[Edge, list[int]], split: _Split
) -> Layout:
    """The layout: positions that begin at 0, heights of the layers added up."""
    out = Layout()
    left = min((x[n] - spans[n][0] / 2 for n in x), default=0.0)
    centre: dict[int, Point] = {}
    room: dict[int, float] = {}  # half the height of a node's layer
    top = 0.0
    for row in rows:
        height = max((spans[n][1] for n in row), default=0.0)
        for n in row:
            centre[n] = (x[n] - left, top + height / 2)
            room[n] = height / 2
        top += height + GAP_Y
    for n, original in split.original.items():
        if n == original:
            out.at[n] = centre[n]
        else:
            out.copies.setdefault(original, []).append(centre[n])
    out.width = max((centre[n][0] + spans[n][0] / 2 for n in centre), default=0.0)
    out.height = max(top - GAP_Y, 0.0)
    for (a, b), chain in chains.items():
        points = [(centre[a][0], centre[a][1] + spans[a][1] / 2)]
        for n in chain[1:-1]:  # straight down between the boxes of a layer
            at, y = centre[n]
            points += [(at, y - room[n]), (at, y + room[n])] if room[n] else [(at, y)]
        out.routes[split.original[a], b] = [*points, (centre[b][0], centre[b][1] - spans[b][1] / 2)]
    return out
