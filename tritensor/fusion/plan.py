"""Plan: what runs in which order for a graph of calls, fused where it pays, and what memory each result takes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.graph import FORWARD, WRITE, Call, Value
from tritensor.fusion.group import Group
from tritensor.fusion.groups import Groups
from tritensor.fusion.items import Memory, Opaque, View, Whole, places_in
from tritensor.fusion.machine_calls import MachineCalls, tables_of
from tritensor.fusion.patterns.rewriting import Rewritten, rewritten
from tritensor.fusion.program.dataflow import arrays_in, lies_so, program_of
from tritensor.fusion.program.slots import Lain, NumberSlot, Program
from tritensor.fusion.running import laid, room, run_corner, run_group, write
from tritensor.fusion.tapes import Fused, Operand, fused
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.tapes.tape import INDEX, Places
from tritensor.ops.lazy_array import window_of

Steps = tuple[int, ...]


class Refused(NamedTuple):
    """Two calls whose steps were not fused, by place in the graph (-1: a copy that no call asked for), and why."""

    maker: int
    reader: int
    why: str


class Plan:
    """What runs for graphs of one structure.

    items: in an order that may be run. read: the leaves of the graph that it was made for, in the order in which it is given them: the `given` first
    of `places` arrays. numbers: how many it is given. wanted: what it gives. memory: of the results of groups, by place; donors: for those that take the
    memory of an array that is read there for the last time, the place of that. last: for each item the places that nobody reads any more. why: what was
    not fused. patterns: what was replaced by ops of the library's own, as the name of a pattern and the places of the calls.
    """

    __slots__ = (
        "_order", "_runs", "_told", "donors", "given", "items", "last", "memory", "numbers", "patterns", "places", "read", "wanted", "why",
    )  # fmt: skip

    def __init__(
        self, items: list[Fused | Opaque], read: Sequence[Value], numbers: int, places: int, wanted: list[Whole | View], memory: dict[int, Memory],
        why: list[Refused], found: Rewritten,
    ) -> None:  # fmt: skip
        self.patterns, self._told = found.patterns, found.numbers
        self.items, self.read, self.given, self.numbers, self.places = items, read, len(read), numbers, places
        self.wanted, self.memory, self.why = wanted, memory, why
        self.last, self.donors = _lives(items, places, {w.place for w in wanted}, memory)
        self._runs = 0
        self._order: list[Any] = list(range(len(items)))  # with runs of items as MachineCalls, once it is run again

    @property
    def groups(self) -> list[Fused]:
        """The fused groups."""
        return [i for i in self.items if type(i) is Fused]

    @property
    def table(self) -> MachineCalls | None:
        """What runs all of it from now on, where machine code does so in one call."""
        return self._order[0] if len(self._order) == 1 and type(self._order[0]) is MachineCalls and self._told is None else None

    def run(self, leaves: Sequence[Any], numbers: Sequence[Any], called: Sequence[tuple[tuple[CodeType, int], Any]] = ()) -> list[Any]:
        """The wanted arrays, in order, of a graph of this structure with these leaves and numbers. Raises what a call raises.

        called: of each call of the graph the user's instruction and what that called, which errors name, also those that kernels report later.
        """
        arrays: list[Any] = [*leaves, *[None] * (self.places - len(leaves))]
        if self._told is not None:
            numbers = [n.value(numbers) for n in self._told]
        before = here.calling
        try:
            if self._runs == 1 and all([isinstance(x, np.ndarray) for x in leaves]):
                self._order = tables_of(self.items, self.memory, [w.place for w in self.wanted], leaves)
            for k in self._order:
                if type(k) is MachineCalls:
                    k.run(arrays, numbers)
                    gone: Any = itertools.chain(*self.last[k.first : k.end])
                else:
                    item, gone = self.items[k], self.last[k]
                    if type(item) is Fused:
                        self._run_group(item, arrays, numbers)
                    else:
                        _run_call(item, arrays, numbers, *(called[item.calls[0]] if called else (None, before)))  # type: ignore[arg-type]
                for place in gone:
                    arrays[place] = None
            self._runs += 1
        finally:
            here.calling = before
        return [_array(w, arrays, numbers) for w in self.wanted]

    def _run_group(self, group: Fused, arrays: list[Any], numbers: Sequence[Any]) -> None:
        given = [
            Places(x.shape, x.strides) if x.dtype == INDEX else window_of(arrays[x.place], x.shape, x.dtype, x.strides, x.first)
            for x in group.inputs
        ]
        told = [n.kind(numbers[n.place]) if type(n) is NumberSlot else n for n in group.numbers]
        outs = []
        for out in group.outs:
            to, donor = self.memory[out.place], self.donors.get(out.place, -1)
            made = arrays[out.place]
            if made is None:  # else another group has written its part
                made = arrays[out.place] = room(*to) if donor < 0 else window_of(arrays[donor], to.shape, to.dtype, to.strides, 0)
            outs.append(window_of(made, out.shape, out.dtype, out.strides, out.first))
        run_group(group, given, told, outs)


def plan(calls: Sequence[Call], wanted: Sequence[Value]) -> Plan:
    """The plan of a graph: its calls in order, and the values that outlive it."""
    found = rewritten(calls, wanted)
    program = program_of(found.calls, wanted)
    return _Planner(program, Groups(program), found).plan()


class _Planner:
    """A plan as it is made: places of slots are given as they are met, leaves first."""

    def __init__(self, program: Program, groups: Groups, found: Rewritten) -> None:
        self.program, self.groups, self.found = program, groups, found
        self.places: dict[int, int] = {}  # by the slot's number
        self.steps: dict[int, int] = {}  # how many live steps each call has
        for node in program.nodes:
            self.steps[node.call] = self.steps.get(node.call, 0) + 1
        for slot in program.slots:
            if slot.leaf:
                self.place(slot.number)

    def place(self, slot: int) -> int:
        return self.places.setdefault(slot, len(self.places))

    def plan(self) -> Plan:
        """All of it."""
        program = self.program
        items: list[Fused | Opaque] = []
        memory: dict[int, Memory] = {}
        for group in self.groups.order():
            if group.nodes[0].node.joins:
                continue
            if self.is_call(group):
                if program.calls[group.nodes[0].node.call].corner == WRITE and not group.outs():
                    continue  # nobody looks
                items.append(self.call(group.nodes[0].node.call, group))
                continue
            made = fused(group)
            made = made._replace(calls=tuple(dict.fromkeys([self.found.places[k] for k in made.calls])))
            for slot in [s.home for s in group.outs()]:
                memory[self.place(slot.number)] = Memory(slot.shape, slot.dtype, slot.strides, slot.device)
            items.append(made._replace(inputs=self.operands(made.inputs), outs=self.operands(made.outs)))
        wanted = [self.array(where) for _, where in program.wanted]
        none = len(program.calls)
        place_of = {k: p for k, p in enumerate(self.found.places) if k != none}
        why = [
            Refused(
                -1 if a is None else place_of.get(a.call, -1),
                place_of.get(b.call, -1),
                program.opaque.get(b.call, why) if b.step is None else why,
            )
            for a, b, why in self.groups.refused
        ]
        return Plan(items, program.leaves, program.numbers, len(self.places), wanted, memory, why, self.found)

    def operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple([o._replace(place=-1 if o.dtype == INDEX else self.place(o.place)) for o in operands])

    def array(self, where: Lain) -> Whole | View:
        place = self.place(where.slot.number)
        if where.whole:
            return Whole(place)
        return View(place, where.shape, where.dtype, where.strides, where.first)

    def argument(self, x: Any) -> Any:
        if type(x) is Lain:
            return self.array(x)
        return tuple([self.argument(y) for y in x]) if type(x) is tuple else x

    def is_call(self, group: Group) -> bool:
        """Whether a group is one call as it is, whose own corner does it: no steps of it run elsewhere, and what it gives are its results."""
        if group.whole:
            return True
        first = group.nodes[0].node.call
        if first == len(self.program.calls) or _is_exact(self.program.calls[first], group):
            return False
        if self.steps[first] != len(group.nodes) or any([p.node.call != first for p in group.nodes]):
            return False
        if any([r.inlined for p in group.nodes for r in p.node.reads]):
            return False  # which the steps make for themselves
        read = {r.slot for p in group.nodes for r in p.node.reads}
        if any([not x.slot.leaf and x.slot not in read for x in arrays_in(self.program.called[first].given)]):
            return False  # it takes what no step of it reads, and what need not be there
        results = self.program.called[first].results
        whole = {r.slot for r in results if r is not None and r.whole}
        return all([s in whole for s in group.outs()])

    def call(self, k: int, group: Group) -> Opaque:
        call, called = self.program.calls[k], self.program.called[k]
        outs = set(group.outs())
        places: list[int] = []
        results: list[Memory | None] = []
        lies: list[bool] = []
        # what was written over memory lies as it was made, and not as that memory
        given = zip(call.inputs, called.given, strict=True)
        otherwise = any([type(x) is Value and type(y) is Lain and not lies_so(x.shape, y.strides, x.strides) for x, y in given])
        for value, where in zip(call.results, called.results, strict=True):
            if value is None or where is None or where.slot not in outs:
                places.append(-1)
                results.append(None)
                lies.append(False)
                continue
            slot = where.slot
            places.append(self.place(slot.number))
            results.append(Memory(slot.shape, slot.dtype, slot.strides, slot.device))
            lies.append(otherwise or value.fixed or slot.seen or any([r.step is not None for r in slot.readers]))
        arguments = tuple([self.argument(x) for x in called.given])
        on = group.nodes[0].node.device
        return Opaque(
            call.name, call.op, call.corner, call.function, call.attrs, on, arguments, called.drawn, tuple(places), tuple(results), tuple(lies),
            (self.found.places[k],),
        )  # fmt: skip


# numpy's functions of elements whose results are rounded exactly, so that machine code of the same formula gives the same bits
_EXACT = frozenset((np.add, np.subtract, np.multiply, np.divide, np.negative, np.absolute, np.sqrt))


def _is_exact(call: Call, group: Group) -> bool:
    """Whether a group is one step on the CPU which a table of machine calls does as well as numpy, and without Python between."""
    node = group.nodes[0].node
    corner: Any = call.op.cpu if call.corner == FORWARD else None
    return len(group.nodes) == 1 and node.device.type == "cpu" and getattr(corner, "bare", corner) in _EXACT


# -- arrays
def _array(x: Any, arrays: Sequence[Any], numbers: Sequence[Any]) -> Any:
    """An argument, computed."""
    kind = type(x)
    if kind is Whole:
        return arrays[x.place]
    if kind is View:
        return window_of(arrays[x.place], x.shape, x.dtype, x.strides, x.first)
    if kind is NumberSlot:
        return numbers[x.place]
    return tuple([_array(y, arrays, numbers) for y in x]) if kind is tuple else x


def _run_call(item: Opaque, arrays: list[Any], numbers: Sequence[Any], at: tuple[CodeType, int] | None, who: Any) -> None:
    given = [_array(x, arrays, numbers) for x in item.given]
    here.calling = who
    if item.corner == WRITE:
        found: Sequence[Any] = (write(given, *item.results[0]),)  # type: ignore[misc]
    else:
        attrs = {**item.attrs, **{name: numbers[k] for name, k in item.drawn}} if item.drawn else item.attrs
        found = run_corner(item.op, item.corner, item.function, given, attrs, item.on, len(item.outs), at)
    for place, array, to, lies in zip(item.outs, found, item.results, item.lies, strict=True):
        if to is not None:
            arrays[place] = laid(item.name, array, to.shape, to.dtype, to.strides if lies else None)


# -- lives
def _read(item: Fused | Opaque) -> set[int]:
    """The places that an item reads."""
    if type(item) is Fused:
        return set(item.reads)
    return set(places_in(item.given))  # type: ignore[union-attr]


def _lives(
    items: list[Fused | Opaque], places: int, wanted: set[int], memory: dict[int, Memory]
) -> tuple[list[tuple[int, ...]], dict[int, int]]:
    """For each item the places that are read there for the last time; and donors, see Plan."""
    read = [_read(i) for i in items]
    lent = {
        k for item, found in zip(items, read, strict=True) if type(item) is not Fused for k in found
    }  # a call may give a view of what it reads
    seen = set(wanted)
    last: list[tuple[int, ...]] = []
    for item, found in zip(reversed(items), reversed(read), strict=True):
        made = [k for k in (item.outs if type(item) is not Fused else [o.place for o in item.outs]) if k >= 0]
        last.append(tuple([k for k in (*sorted(found), *made) if k not in seen]))
        seen |= found
    last.reverse()
    donors: dict[int, int] = {}
    for item, gone in zip(items, last, strict=True):
        if type(item) is Fused and not item.rows:
            free = [k for k in gone if k in memory and k not in lent]
            for out in item.outs:
                donor = next((k for k in free if _may_take(item, out, k, memory)), None)
                if donor is not None:
                    donors[out.place] = donor
                    free.remove(donor)
    return last, donors


def _may_take(group: Fused, out: Operand, donor: int, memory: dict[int, Memory]) -> bool:
    """Whether a result may be written over an input that is read there alone, element for element."""
    found = [x for x in group.inputs if x.place == donor]
    if len(found) != 1:
        return False
    (mine,) = found
    if mine.first or mine.dtype != out.dtype or mine.shape != out.shape or mine.strides != out.strides:
        return False
    a, b = memory[donor], memory[out.place]
    whole = np.prod(out.shape) == np.prod(b.shape)  # and not a part of it
    return a.device == b.device and np.prod(a.shape) == np.prod(b.shape) and mine.shape == group.shape and bool(whole)
