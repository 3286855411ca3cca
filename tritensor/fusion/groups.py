"""Groups: which steps run as one, found by walking the program once and joining each step to what makes its operands where their spaces agree."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tritensor.fusion.fitting import fit_of
from tritensor.fusion.group import Group, Placed, fill
from tritensor.fusion.program.slots import Node, Program, Slot

MOST_STEPS = 64
MOST_ARRAYS = 24  # inputs and results
NEAR = 3  # groups that read the same array and are tried


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
            for g in makers if not node.joins else ():
                self.refuse(g, node, f"{self.program.calls[node.call].name} is a kernel of its own")
            return
        fill(made, node)
        current: Group | None = None
        makers.sort(key=lambda g: -self.groups[g].nodes[-1].node.place)
        for g in makers:
            host = self.groups.get(g)
            if host is None:  # joined meanwhile
                continue
            if host.whole:
                maker = host.nodes[0].node
                why = "is put together in memory" if maker.joins else "is a kernel of its own"
                self.refuse(g, node, f"{self.program.calls[maker.call].name} {why}")
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
        fit = fit_of(host, guest, by)
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
