"""Groups: which steps run as one, found by walking the program once and joining each step to what makes its operands where their spaces agree."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

from tritensor.fusion.dataflow import Node, Program, Slot, SlotRead
from tritensor.fusion.spaces import Mapping, Steps, Unit, mapping, one_step, parts, split, units
from tritensor.fusion.steps import fits
from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.parts.view_arithmetic import merge_axes

MOST_STEPS = 64
MOST_ARRAYS = 24  # inputs and results
NEAR = 3  # groups that read the same array and are tried


class Placed:
    """A node over its group's axes: strides of what it reads and of what it makes."""

    __slots__ = ("made", "node", "reads")

    def __init__(self, node: Node, reads: list[Steps], made: list[Steps]) -> None:
        self.node, self.reads, self.made = node, reads, made


class Group:
    """Nodes that run as one, over axes of these sizes. `rows` are the axes that its folds go over, or, where it has none (`folds`), along which some of
    what it makes does not vary; None: all that it makes varies along all axes.

    reads: how each array from elsewhere is read; made: how each that it makes lies, 0 along rows where it is one per row. before: the groups that lead to
    it, deps: those whose arrays it reads, as bits.
    """

    __slots__ = ("before", "deps", "folds", "made", "nodes", "number", "reads", "rows", "sizes")

    def __init__(self, number: int, before: int, deps: int) -> None:
        self.number, self.before, self.deps = number, before, deps
        self.nodes: list[Placed] = []
        self.sizes: tuple[int, ...] = ()
        self.rows: frozenset[int] | None = None
        self.folds = False
        self.made: dict[Slot, Steps] = {}
        self.reads: dict[Slot, list[tuple[SlotRead, Steps]]] = {}

    @property
    def whole(self) -> bool:
        """Whether it is one call as it is."""
        return self.nodes[0].node.step is None

    def outs(self) -> list[Slot]:
        """What it makes for others."""
        own = {id(p.node) for p in self.nodes}
        return [s for s in self.made if s.wanted or any([id(r) not in own for r in s.readers])]

    def __repr__(self) -> str:
        return f"Group({self.number}, {self.sizes}, rows {self.rows}, {len(self.nodes)} nodes)"


class Groups:
    """The groups of a program as they grow."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.groups: dict[int, Group] = {}
        self.of: dict[int, int] = {}  # of nodes, by their id: the number of a group
        self.joined: list[int] = []  # by number: the group itself, or the one that it has become part of
        self.readers: dict[Slot, list[int]] = {}
        self.refused: list[tuple[Node | None, Node, str]] = []
        for node in program.nodes:
            if len(node.made) == 1 and node.made[0] is not None and node.made[0].constant and not _is_read_whole(node.made[0]):
                continue
            self.add(node)

    def find(self, number: int) -> int:
        while self.joined[number] != number:
            number = self.joined[number]
        return number

    # -- a node
    def add(self, node: Node) -> None:
        """Give a node its group."""
        deps = 0
        makers: list[int] = []
        for r in node.reads:
            if r.slot.node is not None and not (node.step is not None and r.inlined):
                g = self.find(self.of[id(r.slot.node)])
                if not deps >> g & 1:
                    deps |= 1 << g
                    makers.append(g)
        before = deps
        for g in makers:
            before |= self.groups[g].before
        made = Group(len(self.joined), before, deps)
        if node.step is None:
            made.nodes.append(Placed(node, [], []))
            made.made = {s: () for s in node.made if s is not None}
            self.register(made, node)
            for g in makers:
                self.refuse(g, node, f"{self.program.calls[node.call].name} is a kernel of its own")
            return
        _fill(made, node)
        current: Group | None = None
        makers.sort(key=lambda g: -self.groups[g].nodes[-1].node.place)
        for g in makers:
            host = self.groups.get(g)
            if host is None:  # joined meanwhile
                continue
            if host.whole:
                self.refuse(g, node, f"{self.program.calls[host.nodes[0].node.call].name} is a kernel of its own")
                continue
            why = self.join(host, made if current is None else current)
            if why:
                self.refuse(g, node, why)
            elif current is None:
                self.of[id(node)] = g
                current = host
            else:
                current = host
        if current is None:
            self.register(made, node)
            current = made
        self.beside(current, node)

    def register(self, group: Group, node: Node) -> None:
        self.joined.append(group.number)
        self.groups[group.number] = group
        self.of[id(node)] = group.number

    def refuse(self, maker: int, node: Node, why: str) -> None:
        group = self.groups.get(self.find(maker))
        self.refused.append((None if group is None else group.nodes[-1].node, node, why))

    def beside(self, current: Group, node: Node) -> None:
        """Join a group with others that read the same array, which is then read once."""
        for r in node.reads:
            if r.slot in current.made or r.inlined:
                continue
            near = self.readers.setdefault(r.slot, [])
            if 0 not in r.strides or not r.strides:
                seen = {current.number}
                for number in near[: -NEAR - 1 : -1]:
                    g = self.find(number)
                    if g in seen:
                        continue
                    seen.add(g)
                    host, guest = self.groups[g], current
                    if len(host.nodes) < len(guest.nodes):
                        host, guest = guest, host
                    if self.join(host, guest, by=r.slot) == "":
                        current = host
                        break
            if not near or near[-1] != current.number:
                near.append(current.number)

    # -- two groups
    def join(self, host: Group, guest: Group, by: Slot | None = None) -> str:
        """Let a group become part of another; why not, or "". `by`: an array that both read; else the guest reads what the host makes."""
        why = self.refusal(host, guest)
        if why:
            return why
        fit = _fit(host, guest, by)
        if type(fit) is str:
            return fit
        assert not isinstance(fit, str)
        registered = guest.number < len(self.joined)
        fit.apply(host, guest)
        self.link(host, guest, registered)
        return ""

    def refusal(self, host: Group, guest: Group) -> str:
        """What forbids two groups to be one whatever their spaces are."""
        if len(host.nodes) + len(guest.nodes) > MOST_STEPS:
            return f"{MOST_STEPS} steps"
        if host.nodes[0].node.device is not guest.nodes[0].node.device and host.nodes[0].node.device != guest.nodes[0].node.device:
            return "another device"
        other = self.way(host, guest) or self.way(guest, host)
        if other is not None:
            return f"another way leads through {self.program.calls[min(other.nodes[0].node.call, len(self.program.calls) - 1)].name}"
        if (
            len(host.made) + len(guest.made) + len(host.reads) + len(guest.reads) > MOST_ARRAYS
            and _arrays_of_both(host, guest) > MOST_ARRAYS
        ):
            return f"{MOST_ARRAYS} arrays"
        return ""

    def way(self, a: Group, b: Group) -> Group | None:
        """A third group that a leads to and that leads to b."""
        for d in _bits(b.deps & ~(1 << a.number)):
            if self.groups[d].before >> a.number & 1:
                return self.groups[d]
        return None

    def link(self, host: Group, guest: Group, registered: bool) -> None:
        """Note what leads where after a guest has become part of its host."""
        own = 1 << host.number
        gone = 1 << guest.number if registered else 0
        before = (host.before | guest.before) & ~own & ~gone
        more = before & ~host.before
        host.before, host.deps = before, (host.deps | guest.deps) & ~own & ~gone
        if registered:
            self.joined[guest.number] = host.number
            del self.groups[guest.number]
            for g in self.groups.values():
                if g.before & (gone | own):
                    g.before = (g.before | own | before) & ~gone
                    if g.deps & gone:
                        g.deps = (g.deps | own) & ~gone
        elif more:
            for g in self.groups.values():
                if g.before & own:
                    g.before |= more

    def order(self) -> list[Group]:
        """The groups, each behind those that lead to it, else as their first nodes were called."""
        waiting = {n: g.deps for n, g in self.groups.items()}
        followers: dict[int, list[int]] = {}
        for n, g in self.groups.items():
            for d in _bits(g.deps):
                followers.setdefault(d, []).append(n)
        left = {n: d.bit_count() for n, d in waiting.items()}
        ready = [(self.groups[n].nodes[0].node.place, n) for n, k in left.items() if not k]
        heapq.heapify(ready)
        found = []
        while ready:
            _, n = heapq.heappop(ready)
            found.append(self.groups[n])
            for m in followers.get(n, ()):
                left[m] -= 1
                if not left[m]:
                    heapq.heappush(ready, (self.groups[m].nodes[0].node.place, m))
        assert len(found) == len(self.groups), "groups lead to one another in a circle"
        return found


def _is_read_whole(slot: Slot) -> bool:
    """Whether a constant must lie in memory: it is wanted, or a call reads it that is no step, or a step its bytes."""
    return slot.wanted or any([n.step is None or any([r.slot is slot and not r.inlined for r in n.reads]) for n in slot.readers])


def _fill(group: Group, node: Node) -> None:
    """A group of one node."""
    step = node.step
    assert step is not None
    group.sizes = step.sizes
    group.rows, group.folds = step.rows or None, step.folds
    strides = [r.strides for r in node.reads]
    made = []
    for slot, (_, own) in zip(node.made, step.made, strict=True):
        assert slot is not None
        group.made[slot] = own
        made.append(own)
    for r, s in zip(node.reads, strides, strict=True):
        if not r.inlined:
            group.reads.setdefault(r.slot, []).append((r, s))
    group.nodes.append(Placed(node, strides, made))


class _Fit:
    """How a guest's axes lie among its host's: the host's cut in parts (`cuts`), more of them behind, and which of them are rows then."""

    __slots__ = ("cuts", "mapping", "rows", "sizes")

    def __init__(self, cuts: list[list[int]] | None, sizes: tuple[int, ...], rows: frozenset[int] | None, how: Mapping) -> None:
        self.cuts, self.sizes, self.rows, self.mapping = cuts, sizes, rows, how

    def host(self, strides: Steps) -> Steps:
        if self.cuts is not None:
            strides = split(strides, self.cuts)
        return strides + (0,) * (len(self.sizes) - len(strides))

    def apply(self, host: Group, guest: Group) -> None:
        """Make the host both."""
        if self.cuts is not None or len(self.sizes) != len(host.sizes):
            for p in host.nodes:
                p.reads, p.made = [self.host(s) for s in p.reads], [self.host(s) for s in p.made]
            host.made = {k: self.host(s) for k, s in host.made.items()}
            host.reads = {k: [(r, self.host(s)) for r, s in found] for k, found in host.reads.items()}
        over = self.mapping.over
        if not self.mapping.same:
            for p in guest.nodes:
                p.reads, p.made = [over(s) for s in p.reads], [over(s) for s in p.made]
        host.sizes, host.rows, host.folds = self.sizes, self.rows, host.folds or guest.folds
        for slot, s in guest.made.items():
            host.made[slot] = over(s)
            host.reads.pop(slot, None)
        for slot, found in guest.reads.items():
            if slot not in host.made:
                host.reads.setdefault(slot, []).extend([(r, over(s)) for r, s in found])
        host.nodes += guest.nodes
        if len(guest.nodes) > 1 or host.nodes[-2].node.place > host.nodes[-1].node.place:
            host.nodes.sort(key=lambda p: p.node.place)


def _fit(host: Group, guest: Group, by: Slot | None) -> _Fit | str:
    """How a guest lies in a host, or why it does not."""
    if by is not None:
        pairs = [(h, g) for _, h in host.reads.get(by, ()) for _, g in guest.reads.get(by, ())]
    else:
        pairs = [(host.made[slot], g) for slot, found in guest.reads.items() if slot in host.made for r, g in found if _is_own(r)]
        if len(pairs) > 1:  # what is most of the space first
            pairs.sort(key=lambda p: p[0].count(0) + p[1].count(0))
    why = "it is read as a part, or in another order"
    for a, b in pairs:
        found = _lying(host, guest, a, b, by is None)
        if type(found) is str:
            why = found
            continue
        assert not isinstance(found, str)
        if _agree(host, guest, found):
            if found.rows is not None and not _in_rows(host, guest, found):
                why = "its rows lie in several pieces"
                continue
            return found
        why = "it is read as a part, or in another order"
    return why


def _is_own(r: SlotRead) -> bool:
    """Whether a read takes a slot's elements as they were made."""
    return r.first == 0 and r.dtype == r.slot.dtype


def _lying(host: Group, guest: Group, a: Steps, b: Steps, made: bool) -> _Fit | str:
    """A fit by an array that the host steps through by a, and the guest by b; `made`: the host makes it."""
    if host.sizes == guest.sizes and a == b and (host.rows == guest.rows or host.rows is None or guest.rows is None) and 0 not in a:
        same = Mapping([[(k, n)] for k, n in enumerate(host.sizes)], len(host.sizes))
        return _Fit(None, host.sizes, guest.rows if host.rows is None else host.rows, same)
    elsewhere = f"another space: {host.sizes} and {guest.sizes}"
    found = units(host.sizes, a, guest.sizes, b)
    if found is None:
        return elsewhere
    free = [k for k, s in enumerate(a) if not s]
    more = [k for k, s in enumerate(b) if not s]
    if (free or more) and not made:
        return elsewhere
    if free and frozenset(free) != host.rows:
        return elsewhere
    if not free and more and (host.folds or (guest.rows is not None and guest.rows != frozenset(more))):
        return elsewhere
    if free and not more and guest.rows is not None:
        return "it folds what is one for each row"
    new: list[int] = []
    if free and more:
        if guest.rows is not None and guest.rows != frozenset(more):
            return elsewhere
        beside = _rows_beside(host, guest, free, more)
        if beside is None:
            return elsewhere
        found = found + beside
    elif more:
        why = _refuse_rows(host, guest, more)
        if why:
            return why
        new = more
    cuts = parts(found, 0, len(host.sizes))
    cut = any([len(c) > 1 for c in cuts])
    sizes: list[int] = []
    for n, c in zip(host.sizes, cuts, strict=True):
        sizes += reversed(c) if len(c) > 1 else [n]
    how = mapping(found, cuts, len(sizes) + len(new), len(guest.sizes))
    rows = frozenset([at for at, k in _numbered(cuts) if k in (host.rows or ())]) if host.rows is not None else None
    if new:
        for j, k in enumerate(new):
            how.places[k] = [(len(sizes) + j, guest.sizes[k])]
        rows = frozenset(range(len(sizes), len(sizes) + len(new)))
        sizes += [guest.sizes[k] for k in new]
        how = Mapping(how.places, len(sizes))
    if guest.rows is not None and not new:
        theirs = how.axes(guest.rows)
        if rows is not None and rows != theirs:
            return elsewhere
        rows = theirs
    return _Fit(cuts if cut else None, tuple(sizes), rows, how)


def _numbered(cuts: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """(new axis, axis that it was part of)."""
    at = 0
    for k, sizes in enumerate(cuts):
        for _ in range(max(len(sizes), 1)):
            yield at, k
            at += 1


def _rows_beside(host: Group, guest: Group, free: list[int], more: list[int]) -> list[Unit] | None:
    """The axes of both that an array steps through that is one for each row: in order, as nothing else says."""
    ours, theirs = [host.sizes[k] for k in free], [guest.sizes[k] for k in more]
    found = units(ours, contiguous_strides(ours), theirs, contiguous_strides(theirs))
    return None if found is None else [(free[i], more[j], n) for i, j, n in found]


def _refuse_rows(host: Group, guest: Group, more: list[int]) -> str:
    """Why a guest's axes that its host has not cannot be rows of what the host makes one for each."""
    n = math.prod([guest.sizes[k] for k in more])
    if not fits(math.prod(host.sizes), n):
        return f"{math.prod(host.sizes)} rows of {n} elements are too few, or too long"
    lies = next(iter(guest.made.values()))
    steps = [s for s in lies if s]
    if steps and not any([lies[k] == min(steps) for k in more]):
        return "its rows do not lie along memory"
    return ""


def _agree(host: Group, guest: Group, fit: _Fit) -> bool:
    """Whether each reads what the other makes element by element as it was made."""
    over = fit.mapping.over
    for slot, found in guest.reads.items():
        if slot in host.made:
            own = fit.host(host.made[slot])
            if not all([_is_own(r) and over(s) == own for r, s in found]):
                return False
    for slot, found in host.reads.items():
        if slot in guest.made:
            own = over(guest.made[slot])
            if not all([_is_own(r) and fit.host(s) == own for r, s in found]):
                return False
    return True


def _in_rows(host: Group, guest: Group, fit: _Fit) -> bool:
    """Whether a kernel of rows can step through all arrays: on a GPU with one stride along rows, and one along the elements of one; on the CPU with two."""
    assert fit.rows is not None
    rows = sorted(fit.rows)
    kept = [k for k in range(len(fit.sizes)) if k not in fit.rows]
    if len(kept) < 2 and len(rows) < 2:
        return True
    ours = [fit.host(s) for s in _strides(host)] if host.rows != fit.rows or fit.cuts is not None else []  # else they have been asked
    theirs = [fit.mapping.over(s) for s in _strides(guest)]
    both = [([fit.sizes[k] for k in axes], axes) for axes in (kept, rows)]
    if all([one_step(sizes, [s[k] for k in axes]) for s in (*ours, *theirs) for sizes, axes in both]):
        return True
    if host.nodes[0].node.device.type != "cpu":
        return False
    steps = [*[fit.host(s) for s in _strides(host)], *theirs]
    return all([len(merge_axes(sizes, [[s[k] for k in axes] for s in steps])[0]) <= 2 for sizes, axes in both])


def _strides(group: Group) -> list[Steps]:
    """Of all arrays that a group reads and makes."""
    return [*[s for found in group.reads.values() for _, s in found], *group.made.values()]


def _arrays_of_both(host: Group, guest: Group) -> int:
    """How many arrays two groups read and give as one."""
    own = {id(p.node) for p in host.nodes} | {id(p.node) for p in guest.nodes}
    made = [*host.made, *guest.made]
    outs = sum([s.wanted or any([id(r) not in own for r in s.readers]) for s in made])
    return outs + len([s for s in {*host.reads, *guest.reads} if s not in host.made and s not in guest.made])


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
