"""Tapes of groups: a group of steps as a Tape, and how its arrays lie over the space that the tape runs over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.group import Group
from tritensor.fusion.program.slots import Node, NumberSlot, Slot
from tritensor.kernels.parts.tapes.tape import INDEX, Fold, Step, Tape
from tritensor.kernels.parts.view_arithmetic import merge_axes

Steps = tuple[int, ...]


class Operand(NamedTuple):
    """An array of a plan, by its place, as a view that broadcasts to a space: 1 where it repeats; strides in elements, `first` in bytes.
    Of type INDEX it is Places, and has no place."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Steps
    first: int


class Fused(NamedTuple):
    """A group: its tape over a space, whose axes from `kept` on make up a row (none where it neither folds nor gives one value for each row).

    On a GPU it has two axes then. numbers: constants as kernels get them, or NumberSlots. calls: the places of the calls that it is made of.
    """

    tape: Tape
    inputs: tuple[Operand, ...]
    numbers: tuple[Any, ...]
    outs: tuple[Operand, ...]
    shape: tuple[int, ...]
    kept: int
    calls: tuple[int, ...]

    @property
    def reads(self) -> tuple[int, ...]:
        """The places of the arrays that it reads."""
        return tuple([x.place for x in self.inputs if x.dtype != INDEX])

    @property
    def rows(self) -> bool:
        """Whether it runs over rows."""
        return self.kept < len(self.shape)


class _Taped:
    """A tape as it is written."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.inputs: dict[tuple[Slot, int, np.dtype, Steps], int] = {}
        self.numbers: list[Any] = []
        self.types: list[np.dtype] = []
        self.number_of: dict[NumberSlot, int] = {}
        self.constants: dict[Slot, tuple[Any, int]] = {}
        for p in group.nodes:
            self.count(p.node, p.reads)

    def count(self, node: Node, reads: list[Steps]) -> None:
        """Number what a node takes."""
        for r, s in zip(node.reads, reads, strict=True):
            if r.inlined:
                if r.slot not in self.constants:
                    maker = r.slot.node
                    assert maker is not None
                    assert maker.step is not None
                    self.constants[r.slot] = maker.step, self.number(maker, 0)
            elif r.slot not in self.group.made:
                self.inputs.setdefault((r.slot, r.first, r.dtype, s), len(self.inputs))
        for k in range(len(node.numbers)):
            self.number(node, k)

    def number(self, node: Node, k: int) -> int:
        """The place of a node's number among the numbers."""
        value = node.numbers[k]
        if type(value) is NumberSlot and value in self.number_of:
            return self.number_of[value]
        place = len(self.numbers)
        self.numbers.append(value)
        assert node.step is not None
        self.types.append(node.step.numbers[k].dtype)
        if type(value) is NumberSlot:
            self.number_of[value] = place
        else:
            self.number_of[_Constant(id(node), k)] = place  # type: ignore[index]
        return place

    def tape(self, outs: list[Slot]) -> Tape:
        """The tape that stores these."""
        first = len(self.inputs)
        at = first + len(self.numbers)
        steps: list[Step | Fold] = []
        values: dict[Slot, int] = {}
        for slot, (step, number) in self.constants.items():
            steps.append(Step(step.function, (first + number,), step.dtypes[0], step.wide))
            values[slot], at = at, at + 1
        for p in self.group.nodes:
            step = p.node.step
            assert step is not None
            given = [
                values[r.slot]
                if r.slot in values and (r.slot in self.group.made or r.inlined)
                else self.inputs[r.slot, r.first, r.dtype, s]
                for r, s in zip(p.node.reads, p.reads, strict=True)
            ]
            for k, n in enumerate(p.node.numbers):
                given.append(first + self.number_of[n if type(n) is NumberSlot else _Constant(id(p.node), k)])  # type: ignore[index]
            picks = tuple([given[k] for k in step.picks])
            if step.rows:
                scalars, more = tuple([given[k] for k in step.scalars]), tuple([given[k] for k in step.more])
                steps.append(Fold(step.function, picks, scalars, more, step.states, step.dtypes))
            else:
                steps.append(Step(step.function, picks, step.dtypes[0], step.wide))
            for made in p.node.made:
                assert made is not None
                values[made], at = at, at + 1
        return Tape(
            tuple([dtype for _, _, dtype, _ in self.inputs]), tuple(self.types), tuple(steps), tuple([values[s] for s in outs])
        )  # fmt: skip


class _Constant(NamedTuple):
    """A constant of a node: no two are one number of a tape, whatever they are."""

    node: int
    place: int


def fused(group: Group) -> Fused:
    """A group as its tape over its space."""
    outs = group.outs()
    made = _Taped(group)
    lying = [(s.home.number, s.dtype, s.first, group.made[s]) for s in outs]
    lying += [(slot.home.number, dtype, slot.first + first, strides) for slot, first, dtype, strides in made.inputs]
    rows = group.rows or frozenset()
    if rows and not any([p.node.step.rows for p in group.nodes]) and all([any([group.made[s][k] for k in rows]) for s in outs]):  # type: ignore[union-attr]
        rows = frozenset()
    order = _order(group, rows, [strides for *_, strides in lying])
    kept = len(group.sizes) - len(rows)
    views = []
    for axes in (order[:kept], order[kept:]):
        views.append(merge_axes([group.sizes[k] for k in axes], [[strides[k] for k in axes] for *_, strides in lying]))
    (head, head_steps), (tail, tail_steps) = views
    if rows and not head:  # one row
        head, head_steps = (1,), [(0,)] * len(lying)
    shape = (*head, *tail)
    operands = []
    for (place, dtype, first, _), a, b in zip(lying, head_steps, tail_steps, strict=True):
        own = (*a, *b)
        operands.append(Operand(place, tuple([n if s else 1 for n, s in zip(shape, own, strict=True)]), dtype, own, first))
    constants = [slot.node.call for slot in made.constants if slot.node is not None]
    calls = tuple(dict.fromkeys([*constants, *[p.node.call for p in group.nodes]]))
    return Fused(
        made.tape(outs), tuple(operands[len(outs) :]), tuple(made.numbers), tuple(operands[: len(outs)]), shape,
        len(head) if rows else len(shape), calls,
    )  # fmt: skip


def _order(group: Group, rows: frozenset[int], strides: list[Steps]) -> list[int]:
    """The axes from the outermost in memory to the innermost as the first of the largest arrays lies, those of rows last."""
    largest = min(strides, key=lambda s: s.count(0)) if strides else ()
    return sorted(range(len(group.sizes)), key=lambda k: (k in rows, -abs(largest[k]) if largest else 0))
