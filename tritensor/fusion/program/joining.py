"""Joining: arrays laid side by side, as `cat` does, which steps take part by part, so that what is joined need not be in memory before it is read whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tritensor.fusion.graph import FORWARD, Call
from tritensor.fusion.program.slots import Lain, Node, Slot, SlotRead, Steps
from tritensor.fusion.program.steps import Elementary, Read, Template, is_taped
from tritensor.kernels.parts.tapes.tape import INDEX

PARTS = {"cpu": 16, "cuda": 4}  # up to which arrays are taken apart: of more, a call that joins them all costs less than one for each


class Joined(NamedTuple):
    """What an array is yet to be put together of: parts side by side along `dim`; call: what joins them, or has made them."""

    call: int
    dim: int
    parts: tuple[Lain, ...]

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where each part begins along dim, and where the last ends."""
        found = [0]
        for part in self.parts:
            found.append(found[-1] + part.shape[self.dim])
        return tuple(found)


class Cutting(NamedTuple):
    """How a template's steps take joined arrays part by part: of each step the axis that is cut (None: it is left whole), of memory that is made so the dim,
    and the bounds of the parts along it."""

    axes: list[int | None]
    dims: dict[int, int]
    bounds: tuple[int, ...]


def joins(call: Call, given: Sequence[Lain]) -> bool:
    """Whether a call is one that joins arrays which are better taken part by part. On a GPU each part that no step makes is a launch."""
    if call.corner != FORWARD or call.op.name not in ("cat", "stack") or call.results[0] is None:
        return False
    y = call.results[0]
    if not 2 <= len(given) <= PARTS.get(y.device.type, 0) or not is_taped(y.dtype):
        return False
    if any([0 in x.shape or x.dtype != y.dtype for x in given]):
        return False
    return y.device.type == "cpu" or sum([x.slot.node is None or x.slot.node.step is None for x in given]) < 2


def parts_of(call: Call, given: Sequence[Lain]) -> tuple[Lain, ...]:
    """What a call joins, with the dim along which it does."""
    dim = call.attrs["dim"]
    if call.op.name == "cat":
        return tuple(given)
    return tuple([
        x._replace(shape=(*x.shape[:dim], 1, *x.shape[dim:]), strides=(*x.strides[:dim], 0, *x.strides[dim:])) for x in given
    ])  # fmt: skip


def cutting(template: Template, arrays: Sequence[Lain], joined: Mapping[Slot, Joined]) -> Cutting | None:
    """How a template takes its joined arrays part by part; None where it takes some otherwise than element by element."""
    bounds: tuple[int, ...] | None = None
    dims: dict[int, int] = {}
    axes: list[int | None] = []
    for step in template.steps:
        axis: int | None = None
        for read in step.reads:
            if read.dtype == INDEX:
                continue
            shape, own, dtype = _read_from(read, template, arrays)
            if read.source < 0:
                dim = dims.get(~read.source)
            else:
                found = joined.get(arrays[read.source].slot)
                dim = None if found is None else found.dim
                if found is not None and (not arrays[read.source].whole or bounds not in (None, found.bounds)):
                    return None
                bounds = found.bounds if found is not None else bounds
            if dim is None:
                continue
            lies = _dims(step.sizes, read.strides, shape, own)
            if read.first or read.dtype != dtype or lies is None or dim not in lies or axis not in (None, lies.index(dim)):
                return None
            axis = lies.index(dim)
        if axis is not None:
            if step.rows or any([r.dtype == INDEX for r in step.reads]):
                return None
            for number, strides in step.made:
                to = _dims(step.sizes, strides, template.made[number].shape, template.made[number].strides)
                if to is None or to[axis] is None:
                    return None
                dims[number] = to[axis]  # type: ignore[assignment]
        axes.append(axis)
    return None if bounds is None else Cutting(axes, dims, bounds)


def part_of(step: Elementary, axis: int, start: int, end: int) -> tuple[Elementary, list[Read]]:
    """A step over part of an axis, from start to end, and its reads of arrays that are not joined; their strides are along all axes, see `along`."""
    sizes = (*step.sizes[:axis], end - start, *step.sizes[axis + 1 :])
    reads = [r._replace(first=r.first + start * r.strides[axis] * r.dtype.itemsize) for r in step.reads]
    made = tuple([(number, along(strides, sizes)) for number, strides in step.made])
    return step._replace(sizes=tuple([n for n in sizes if n != 1]), made=made), reads


def along(strides: Steps, sizes: Sequence[int]) -> Steps:
    """Strides along the axes that have more than one element."""
    return tuple([s for s, n in zip(strides, sizes, strict=True) if n != 1])


def read_of_part(read: Read, template: Template, arrays: Sequence[Lain], part: Lain, sizes: Sequence[int]) -> SlotRead:
    """A step's read of one part of what it reads joined."""
    shape, own, _ = _read_from(read, template, arrays)
    lies = _dims(sizes, read.strides, shape, own)
    assert lies is not None, "its cutting says which dims it steps along"
    return SlotRead(part.slot, part.first, read.dtype, tuple([0 if d is None else part.strides[d] for d in lies]))


class Cuts:
    """Which slots are read part by part: of each the dim along which and the bounds, and how many reads are so."""

    def __init__(self) -> None:
        self.of: dict[Slot, tuple[int, tuple[int, ...]]] = {}
        self.reads: dict[Slot, int] = {}

    def note(self, read: SlotRead, sizes: Sequence[int], axis: int, bounds: tuple[int, ...]) -> None:
        """A step over axes of these sizes, one of which is cut, reads a slot; `read` is along all of it."""
        slot = read.slot
        lies = None if read.first or read.dtype != slot.dtype else _dims(sizes, read.strides, slot.shape, slot.strides)
        dim = None if lies is None else lies[axis]
        if dim is not None and self.of.setdefault(slot, (dim, bounds)) == (dim, bounds):
            self.reads[slot] = self.reads.get(slot, 0) + len(bounds) - 1

    def cut_makers(self, nodes: Sequence[Node], new: Callable[[Slot, int, int, int], Slot]) -> list[Node]:
        """The nodes, with those whose results are read part by part, and not otherwise, cut the same way. `new` makes a window of a slot."""
        readers: dict[Slot, list[Node]] = {}
        for node in nodes:
            for r in node.reads:
                readers.setdefault(r.slot, []).append(node)  # once for each read
        found: list[Node] = []
        for node in reversed(nodes):
            axis = self._axis(node, readers)
            if axis is None:
                found.append(node)
                continue
            parts = self._cut(node, axis, new, readers)
            for r in node.reads:
                readers[r.slot] = [n for n in readers[r.slot] if n is not node] + parts * sum([x.slot is r.slot for x in node.reads])
            found += reversed(parts)
        found.reverse()
        return found

    def _axis(self, node: Node, readers: Mapping[Slot, Sequence[Node]]) -> int | None:
        """The axis along which a node may be cut."""
        step, made = node.step, node.made
        if step is None or step.rows or not node.reads or any([r.dtype == INDEX for r in node.reads]):
            return None
        axes: set[int | None] = set()
        for slot, (_, strides) in zip(made, step.made, strict=True):
            cut = None if slot is None else self.of.get(slot)
            if slot is None or cut is None or slot.wanted or slot.seen or len(readers.get(slot, ())) != self.reads[slot]:
                return None
            lies = _dims(step.sizes, strides, slot.shape, slot.strides)
            axes.add(lies.index(cut[0]) if lies is not None and cut[0] in lies else None)
        cuts = {self.of[slot] for slot in made if slot is not None}
        return axes.pop() if len(axes) == len({bounds for _, bounds in cuts}) == 1 else None

    def _cut(self, node: Node, axis: int, new: Callable[[Slot, int, int, int], Slot], readers: Mapping[Slot, Sequence[Node]]) -> list[Node]:
        """A node as one for each part."""
        step, made = node.step, [slot for slot in node.made if slot is not None]
        assert step is not None
        bounds = self.of[made[0]][1]
        parts = []
        for start, end in pairwise(bounds):
            sizes = (*step.sizes[:axis], end - start, *step.sizes[axis + 1 :])
            part = Node(node.place, node.call, part_of(step, axis, start, end)[0], node.device)
            part.numbers = node.numbers
            for r in node.reads:
                first = r.first + start * r.strides[axis] * r.dtype.itemsize
                part.reads.append(SlotRead(r.slot, first, r.dtype, along(r.strides, sizes)))
            for slot in made:
                own = new(slot, self.of[slot][0], start, end)
                own.node = part
                part.made.append(own)
                for reader in readers[slot]:
                    reader.reads = [r._replace(slot=own, first=0) if r.slot is slot and r.first == own.first else r for r in reader.reads]
            parts.append(part)
        for r in node.reads:
            self.note(r, step.sizes, axis, bounds)
        return parts


def window(slot: Slot, dim: int, number: int, start: int, end: int) -> Slot:
    """A part of a slot's memory as a slot of its own."""
    shape = (*slot.shape[:dim], end - start, *slot.shape[dim + 1 :])
    made = Slot(number, shape, slot.dtype, slot.strides, slot.device, None)
    made.home, made.first = slot, start * slot.strides[dim] * slot.dtype.itemsize
    return made


def _read_from(read: Read, template: Template, arrays: Sequence[Lain]) -> tuple[tuple[int, ...], Steps, object]:
    """Shape, strides and type of what a step reads of."""
    x = template.made[~read.source] if read.source < 0 else arrays[read.source]
    return x.shape, x.strides, x.dtype


def _dims(sizes: Sequence[int], strides: Steps, shape: tuple[int, ...], own: Steps) -> list[int | None] | None:
    """Of each axis the dim of an array that it steps along, None where the array repeats; None where it is another way to step through it."""
    of = {(n, s): d for d, (n, s) in enumerate(zip(shape, own, strict=True)) if n != 1}
    found = [None if s == 0 else of.get((n, s), -1) for n, s in zip(sizes, strides, strict=True)]
    return None if -1 in found else found
