"""Dataflow: calls as one program of elementary steps and of calls that stay whole, on slots that are written once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tritensor.fusion.graph import BACKWARD, FORWARD, WRITE, Call, DerivedNumber, Value, Window
from tritensor.fusion.program import joining
from tritensor.fusion.program.slots import Called, Lain, Node, NumberSlot, Program, Slot, SlotRead, Steps
from tritensor.fusion.program.steps import Elementary, Number, Template, is_taped
from tritensor.fusion.program.templates import copy_template, drawn_attributes, numbers_in, seed_places, template_of, uniform
from tritensor.ground.device import device
from tritensor.ground.strides import lie_alike
from tritensor.kernels.parts.tapes.capture import ArraySpec
from tritensor.kernels.parts.tapes.tape import INDEX

_NUMBERS = (float, int, DerivedNumber)


def program_of(calls: Sequence[Call], wanted: Sequence[Value]) -> Program:
    """The program of calls, in order, without steps that lead to nothing that is wanted."""
    made = _Builder(calls)
    for k, call in enumerate(calls):
        made.add(k, call)
    return made.program(wanted)


class _Builder:
    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.nodes: list[Node] = []
        self.slots: list[Slot] = []
        self.leaves: list[Value] = []
        self.called: list[Called] = []
        self.where: dict[Value, Lain] = {}  # of values: where they lie, with their strides
        self.opaque: dict[int, str] = {}  # why calls stay whole
        self.joined: dict[Slot, joining.Joined] = {}  # what is yet to be put together
        self.cuts = joining.Cuts()
        self.numbers = 0

    # -- values
    def lain(self, value: Value) -> Lain:
        found = self.where.get(value)
        if found is None:  # it is a leaf
            slot = self.slot(value.shape, value.dtype, value.strides, value.device, None)
            slot.leaf = True
            self.leaves.append(value)
            found = self.where[value] = Lain(slot, value.shape, value.dtype, value.strides, 0)
        return found

    def slot(self, shape: tuple[int, ...], dtype: np.dtype, strides: Steps, on: device, node: Node | None) -> Slot:
        made = Slot(len(self.slots), shape, dtype, strides, on, node)
        self.slots.append(made)
        return made

    def argument(self, x: Any) -> Any:
        """An argument with Lain in place of what stands for arrays."""
        kind = type(x)
        if kind is Value:
            return self.lain(x)
        if kind is Window:
            base = self.lain(x.value)
            if not lies_so(x.value.shape, base.strides, x.value.strides):
                base = self.copied(x.value, base)
            return Lain(base.slot, x.shape, x.dtype, x.strides, base.first + x.first)
        return tuple([self.argument(y) for y in x]) if kind is tuple else x

    def copied(self, value: Value, base: Lain) -> Lain:
        """A value, which lies in other memory as a view, in memory of its own that lies as it says."""
        template = copy_template(value.shape, value.dtype, base.strides, value.strides)
        assert template is not None
        (found,) = self.steps(len(self.calls), template, [base], value.device, [value], ())
        self.where[value] = found  # type: ignore[assignment]
        return found  # type: ignore[return-value]

    # -- calls
    def add(self, k: int, call: Call) -> None:
        """The nodes of a call."""
        given = tuple([self.argument(x) for x in call.inputs])
        on = next(r.device for r in call.results if r is not None)
        places = self.places(call.inputs)
        others = [self.places(args) for _, args, _ in call.kernels or ()]
        drawn = tuple([(name, self.number()) for name in (*drawn_attributes(call.op, call.corner), *derived_attributes(call))])
        places_drawn = tuple([p for _, p in drawn])
        if joining.joins(call, given):
            found = self.join(k, call, given, on)
        else:
            steps = None if derives(call) else self.captured(k, call, given, places, others, on, places_drawn)
            found = self.whole(k, call, given, on) if steps is None else steps
        for value, where in found:
            self.where[value] = where
        results = tuple([None if v is None else self.where[v] for v in call.results])
        self.called.append(
            Called(tuple([NumberSlot(p, None) if p >= 0 else x for x, p in zip(given, places, strict=True)]), drawn, results)
        )

    def number(self) -> int:
        self.numbers += 1
        return self.numbers - 1

    def places(self, args: Sequence[Any]) -> tuple[int, ...]:
        """Of each argument its place among the program's numbers, -1 for what is none."""
        return tuple([self.number() if type(x) in _NUMBERS else -1 for x in args])

    def captured(
        self,
        k: int,
        call: Call,
        given: tuple[Any, ...],
        places: Sequence[int],
        others: Sequence[Sequence[int]],
        on: device,
        drawn: tuple[int, ...],
    ) -> list[tuple[Value, Lain]] | None:
        """The results of a call by its steps, where they are known."""
        results = call.results
        if call.corner == WRITE:
            base, item, window = given
            (made,) = results
            assert made is not None
            if base is not None and window != (made.shape, made.dtype, made.strides, 0):
                return None
            if (
                not lies_so(made.shape, item.strides, made.strides)
                and copy_template(made.shape, made.dtype, item.strides, made.strides) is None
            ):
                return None  # of a type that no steps copy
            # no copy: a value is never written, and who wants it in memory of its own sees to that
            return [(made, Lain(item.slot, made.shape, made.dtype, item.strides, item.first))]
        if call.corner == FORWARD:
            return self.by_corner(k, call, "forward", given, places, tuple(range(len(results))), on, drawn)
        found: list[tuple[Value, Lain]] = []
        for i, (function, args, picks) in enumerate(kernels_of(call)):
            inside, own = (given, places) if call.kernels is None else (tuple([self.argument(x) for x in args]), others[i])
            at = seed_places(call.op, function)
            part = self.by_corner(k, call, function, inside, own, picks, on, () if at is None else tuple([own[i] for i in at]))
            if part is None:
                return None
            found += part
        known = {v for v, _ in found}
        return found if found and all([v is None or v in known for v in results]) else None

    def by_corner(
        self,
        k: int,
        call: Call,
        corner: Any,
        given: tuple[Any, ...],
        places: Sequence[int],
        picks: Sequence[int],
        on: device,
        drawn: tuple[int, ...],
    ) -> list[tuple[Value, Lain]] | None:
        """Results by one of the op's corners; `picks` says for each result of the call which of the corner's it is, -1 for none. drawn: the numbers that
        are seed and offset."""
        op = call.op
        numbers = tuple(numbers_in(given)) if uniform(op, corner) else ()
        values = call.results
        count = max(picks) + 1
        strides: list[Steps | None] = [None] * count
        for value, pick in zip(values, picks, strict=True):
            if pick >= 0 and value is not None:
                strides[pick] = value.strides
        specs = tuple([_spec(x) for x in given])
        refuses = getattr(op.cpu, "refuses", None)
        if refuses is not None and on.type == "cpu" and corner == "forward" and refuses(*specs):
            self.opaque[k] = "it refuses some values"
            return None
        template = template_of(op, corner, specs, call.attrs, numbers, tuple(strides))
        if type(template) is str:
            self.opaque[k] = template
            return None
        assert not isinstance(template, str)
        slots = drawn or (tuple([p for p in places if p >= 0]) if numbers else ())
        return self.results(k, template, list(arrays_in(given)), on, values, slots, picks)

    def results(
        self,
        k: int,
        template: Template,
        arrays: list[Lain],
        on: device,
        values: Sequence[Value | None],
        slots: tuple[int, ...],
        picks: Sequence[int],
    ) -> list[tuple[Value, Lain]] | None:
        """Values by a template; None where it has not what is asked for."""
        pairs = [(v, p) for v, p in zip(values, picks, strict=True) if p >= 0 and v is not None]
        if any([p >= len(template.results) for _, p in pairs]):
            return None
        wanted: list[Value | None] = [None] * len(template.results)
        for v, p in pairs:
            result = template.results[p]
            if (
                result is None
                or result.shape != v.shape
                or result.dtype != v.dtype
                or (not is_taped(v.dtype) and not lies_so(v.shape, result.strides, v.strides))
            ):
                return None  # a view that nobody could copy
            wanted[p] = v
        found = self.steps(k, template, arrays, on, wanted, slots)
        return [(v, found[p]) for v, p in pairs]  # type: ignore[misc]

    def steps(
        self, k: int, template: Template, arrays: list[Lain], on: device, values: Sequence[Value | None], slots: tuple[int, ...]
    ) -> list[Lain | None]:
        """The nodes of a template; where each result lies."""
        made = [self.slot(m.shape, m.dtype, m.strides, on, None) for m in template.made]
        cut = joining.cutting(template, arrays, self.joined) if self.joined else None
        if cut is None:
            self.put_together(arrays)
        for step, axis in zip(template.steps, [None] * len(template.steps) if cut is None else cut.axes, strict=True):
            if axis is not None:
                assert cut is not None
                self.step_by_parts(k, template, step, axis, cut, arrays, made, slots)
                continue
            reads = []
            for source, first, dtype, strides in step.reads:
                if dtype == INDEX:
                    shape = template.made[step.made[0][0]].shape
                    reads.append(SlotRead(self.slot(shape, INDEX, strides, on, None), 0, INDEX, strides))
                elif source < 0:
                    reads.append(SlotRead(made[~source], first, dtype, strides))
                else:
                    reads.append(SlotRead(arrays[source].slot, arrays[source].first + first, dtype, strides))
            self.node(k, step, reads, [made[which] for which, _ in step.made], slots)
        found: list[Lain | None] = []
        for result, value in zip(template.results, values, strict=True):
            if result is None or value is None:
                found.append(None)
            elif result.source < 0:
                found.append(Lain(made[~result.source], value.shape, value.dtype, result.strides, result.first))
            else:
                base = arrays[result.source]
                found.append(Lain(base.slot, value.shape, value.dtype, result.strides, base.first + result.first))
        return found

    def node(self, k: int, step: Elementary, reads: list[SlotRead], made: list[Slot], slots: tuple[int, ...]) -> None:
        """A step's node."""
        node = Node(len(self.nodes), k, step, made[0].device)
        node.reads, node.made = reads, [*made]
        node.numbers = [_number(n, slots) for n in step.numbers]
        for slot in made:
            slot.node, slot.constant = node, not step.reads
        self.nodes.append(node)

    # -- arrays side by side
    def join(self, k: int, call: Call, given: Sequence[Lain], on: device) -> list[tuple[Value, Lain]]:
        """The result of a call that joins arrays, which is put together when somebody reads it whole."""
        self.put_together(given)
        value = call.results[0]
        assert value is not None
        slot = self.slot(value.shape, value.dtype, value.strides, on, None)
        self.joined[slot] = joining.Joined(k, call.attrs["dim"], joining.parts_of(call, given))
        return [(value, Lain(slot, value.shape, value.dtype, value.strides, 0))]

    def put_together(self, arrays: Sequence[Lain]) -> None:
        """Have all of them in memory: each part is written to its window of the whole."""
        for slot in dict.fromkeys([x.slot for x in arrays]):
            joined = self.joined.pop(slot, None)
            if joined is None:
                continue
            node = Node(0, joined.call, None, slot.device)
            for part, (start, end) in zip(joined.parts, pairwise(joined.bounds), strict=True):
                own = part.slot
                if own.home is not slot:
                    own = self.window(slot, joined.dim, start, end)
                    template = copy_template(part.shape, part.dtype, part.strides, slot.strides)
                    assert template is not None, "joins() asks for types that can be copied"
                    (step,) = template.steps
                    reads = [SlotRead(part.slot, part.first, r.dtype, r.strides) for r in step.reads]
                    self.node(joined.call, step, reads, [own], ())
                node.reads.append(SlotRead(own, 0, own.dtype, own.strides))
            node.place, node.joins, node.made, slot.node = len(self.nodes), True, [slot], node
            self.nodes.append(node)

    def window(self, slot: Slot, dim: int, start: int, end: int) -> Slot:
        made = joining.window(slot, dim, len(self.slots), start, end)
        self.slots.append(made)
        return made

    def step_by_parts(
        self, k: int, template: Template, step: Elementary, axis: int, cut: joining.Cutting, arrays: list[Lain], made: list[Slot],
        slots: tuple[int, ...],
    ) -> None:  # fmt: skip
        """A step of joined arrays: one for each part, whose results are parts of what it makes."""
        found: list[list[Lain]] = [[] for _ in step.made]
        for n, (start, end) in enumerate(pairwise(cut.bounds)):
            part, given = joining.part_of(step, axis, start, end)
            sizes = (*step.sizes[:axis], end - start, *step.sizes[axis + 1 :])
            reads = []
            for read, moved in zip(step.reads, given, strict=True):
                slot = made[~read.source] if read.source < 0 else arrays[read.source].slot
                if slot in self.joined:
                    r = joining.read_of_part(read, template, arrays, self.joined[slot].parts[n], step.sizes)
                else:
                    first = 0 if read.source < 0 else arrays[read.source].first
                    r = SlotRead(slot, first + moved.first, read.dtype, read.strides)
                    if not n:
                        self.cuts.note(r._replace(first=first + read.first), step.sizes, axis, cut.bounds)
                reads.append(r._replace(strides=joining.along(r.strides, sizes)))
            own = [self.window(made[which], cut.dims[which], start, end) for which, _ in step.made]
            self.node(k, part, reads, own, slots)
            for lains, slot in zip(found, own, strict=True):
                lains.append(Lain(slot, slot.shape, slot.dtype, slot.strides, 0))
        for (which, _), lains in zip(step.made, found, strict=True):
            self.joined[made[which]] = joining.Joined(k, cut.dims[which], tuple(lains))

    def whole(self, k: int, call: Call, given: tuple[Any, ...], on: device) -> list[tuple[Value, Lain]]:
        """The results of a call that runs by its op's own corner."""
        self.put_together(list(arrays_in(given)))
        node = Node(len(self.nodes), k, None, on)
        for slot in dict.fromkeys([x.slot for x in arrays_in(given)]):
            node.reads.append(SlotRead(slot, 0, slot.dtype, slot.strides))
        for x in arrays_in(given):
            x.slot.seen = x.slot.seen or not x.whole
        found = []
        for value in call.results:
            if value is None:
                node.made.append(None)
                continue
            slot = self.slot(value.shape, value.dtype, value.strides, on, node)
            node.made.append(slot)
            found.append((value, Lain(slot, value.shape, value.dtype, value.strides, 0)))
        self.nodes.append(node)
        return found

    def program(self, wanted: Sequence[Value]) -> Program:
        """All of it, without what leads nowhere."""
        kept = []
        for value in wanted:
            where = self.lain(value)
            if value.fixed and not lies_so(value.shape, where.strides, value.strides):
                where = self.copied(value, where)
            self.put_together([where])
            where.slot.wanted = True
            where.slot.seen = where.slot.seen or not where.whole
            kept.append((value, where))
        if self.cuts.of:
            self.nodes = self.cuts.cut_makers(self.nodes, self.window)
        for node in reversed(self.nodes):
            node.live = any([s is not None and (s.wanted or bool(s.readers)) for s in node.made])
            if node.step is None:  # a bad index is told though nobody holds what it picks
                node.live = node.live or self.calls[node.call].op.reports
            if node.live:
                for r in node.reads:
                    r.slot.readers.append(node)
        return Program(self.calls, self.called, [n for n in self.nodes if n.live], self.slots, self.leaves, kept, self.numbers, self.opaque)


def kernels_of(call: Call) -> Sequence[tuple[int, tuple[Any, ...], tuple[int, ...]]]:
    """The functions of an op's gradient corner for a GPU that make a gradient's results: place, arguments, which result of it each of the call's is."""
    if call.kernels is not None:
        return call.kernels
    if call.corner != BACKWARD or call.op.backward is None:
        return ()
    if call.part is None:
        return ((0, call.inputs, tuple(range(len(call.results)))),)
    return ((call.part, call.inputs, (0,)),)


def derived_attributes(call: Call) -> tuple[str, ...]:
    """The attributes of a call that are derived numbers."""
    return tuple([name for name, a in call.attrs.items() if type(a) is DerivedNumber])


def derives(call: Call) -> bool:
    """Whether a call takes derived numbers."""
    return DerivedNumber in [type(x) for x in (*call.inputs, *call.attrs.values())]


def _number(number: Number, slots: tuple[int, ...]) -> Any:
    return number.value if number.kind is None else NumberSlot(slots[number.slot], number.kind)


def _spec(x: Any) -> Any:
    """An argument as captures know it."""
    if type(x) is Lain:
        return ArraySpec(x.shape, x.dtype, x.strides)
    return tuple([_spec(y) for y in x]) if type(x) is tuple else x


def arrays_in(given: Any) -> Any:
    """The arrays among arguments, in order."""
    for x in given:
        if type(x) is Lain:
            yield x
        elif type(x) is tuple:
            yield from arrays_in(x)


def lies_so(shape: tuple[int, ...], strides: Steps, wanted: Steps) -> bool:
    """Whether strides are those that are wanted, but for axes of one element."""
    return strides is wanted or lie_alike(shape, strides, wanted) or 0 in shape
