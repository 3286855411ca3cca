"""Group: steps that run as one, over the axes of one space; or one call as it is."""

from __future__ import annotations

from tritensor.fusion.program.slots import Node, Slot, SlotRead
from tritensor.fusion.spaces import Steps


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


def fill(group: Group, node: Node) -> None:
    """Make a new group that of one step."""
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
