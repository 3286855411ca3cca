"""Machine calls: items of a plan on the CPU in a row, groups' machine functions and BLAS's products, as one table that machine code runs through."""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.graph import FORWARD
from tritensor.fusion.items import Memory, View, Whole, places_in
from tritensor.fusion.program.slots import NumberSlot
from tritensor.fusion.running import room
from tritensor.fusion.tapes import Fused
from tritensor.ground.strides import contiguous_strides, memory_extent
from tritensor.kernels.parts.tapes.cpu.arrangement import Arrangement, arrange
from tritensor.kernels.parts.tapes.cpu.arrangement import Memory as Lies
from tritensor.kernels.parts.tapes.cpu.programs import Program, parts_of, program_of, step_along
from tritensor.kernels.parts.tapes.cpu.text import NUMBERS
from tritensor.kernels.parts.tapes.tape import INDEX
from tritensor.llvm import products, workers
from tritensor.llvm.call_frames import Frame, Patch

_CALL = 1 + workers.ARGUMENTS  # words of a call in a table
_LINE = 64  # bytes at whose multiples temporaries begin


class _Call(NamedTuple):
    """One item as machine code calls it.

    words: the arguments, or what its one argument points to (`apart`), zeros where addresses are to stand. addresses: (word, place, bytes ahead).
    numbers: (word, code of struct, number or NumberSlot). scratch: (word, bytes) of memory that it needs while it runs.
    """

    address: int
    words: list[int]
    apart: bool
    addresses: list[tuple[int, int, int]]
    numbers: list[tuple[int, str, Any]]
    scratch: list[tuple[int, int]]
    reads: list[int]
    makes: list[int]
    held: Any = None


class MachineCalls:
    """Items in a row. first, end: which. makes: (place, memory) of the arrays that it leaves behind it; what nobody else reads is a temporary. shared: whether
    the calls are those of one item's parts, one a thread."""

    def __init__(
        self, first: int, end: int, calls: Sequence[_Call], makes: dict[int, Memory], temporaries: dict[int, int], shared: bool = False
    ) -> None:
        self.first, self.end = first, end
        in_order = {p for p, m in makes.items() if m.strides == contiguous_strides(m.shape)}
        self._plain = [(p, m.shape, m.dtype) for p, m in makes.items() if p in in_order]  # which numpy makes by itself
        self._others = [(p, m) for p, m in makes.items() if p not in in_order]
        self._held = [c.held for c in calls]
        offsets, self._bytes = _arena(calls, temporaries)
        self.places = list(dict.fromkeys([p for c in calls for p in (*c.makes, *c.reads) if p not in temporaries]))
        which, room = {p: k for k, p in enumerate(self.places)}, len(self.places)
        words: list[int] = [0] * (_CALL * len(calls))
        patches: list[Patch] = []
        own: list[tuple[int, int]] = []
        self._numbers: list[tuple[int, Any, NumberSlot]] = []
        fixed: list[tuple[int, str, Any]] = []
        for k, call in enumerate(calls):
            words[_CALL * k], start = call.address, _CALL * k + 1
            if call.apart:
                own.append((start, len(words)))
                start = len(words)
                words += call.words
            else:
                words[start : start + len(call.words)] = call.words
            for word, place, ahead in call.addresses:
                temporary = place in temporaries
                patches.append(Patch(start + word, room if temporary else which[place], ahead + (offsets[place] if temporary else 0)))
            for word, size in call.scratch:
                patches.append(Patch(start + word, room, self._bytes))
                self._bytes += _lines(size)
            for word, code, number in call.numbers:
                if type(number) is NumberSlot:
                    self._numbers.append((8 * (start + word), struct.Struct(code).pack_into, number))
                else:
                    fixed.append((8 * (start + word), code, number))
        self._words = array("q", words)
        for byte, code, number in fixed:
            struct.pack_into(code, self._words, byte, number)
        self._frame = functools.partial(Frame, self._words, len(calls), own, patches, room, self._bytes, shared)
        self._frames: list[Frame] = []  # those that nobody runs

    def run(self, arrays: list[Any], numbers: Sequence[Any]) -> None:
        """Run it on a plan's arrays, by place, to which it adds what it makes. The numbers in this object must never be others."""
        for place, shape, dtype in self._plain:
            arrays[place] = np.empty(shape, dtype)
        for place, memory in self._others:
            arrays[place] = room(*memory)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._frame()
        if frame.numbers is not numbers:
            for byte, pack, number in self._numbers:
                frame.write(byte, pack, number.kind(numbers[number.place]))
            frame.numbers = numbers
        frame.run([arrays[p] for p in self.places])
        self._frames.append(frame)


def tables_of(
    items: Sequence[Any], memory: dict[int, Memory], wanted: Sequence[int], leaves: Sequence[np.ndarray]
) -> list[MachineCalls | int]:
    """The places of a plan's items in order, but for those in a row that machine code runs through by itself. `memory` and `wanted` are the plan's, by place;
    `leaves` tells how such arrays lie."""
    lies: dict[int, Lies] = {k: (x.shape, x.strides, x.itemsize) for k, x in enumerate(leaves)}
    dtypes = {k: x.dtype for k, x in enumerate(leaves)}
    calls: list[Sequence[_Call]] = []  # of each item: none where machine code does not do it, several for threads
    memories: dict[int, Memory] = {}
    for item in items:
        if isinstance(item, Fused):
            memories.update({o.place: memory[o.place] for o in item.outs})
            parts, made = _group_calls(item, memories), [o.place for o in item.outs]
        else:
            memories.update({p: m for p, m in zip(item.outs, item.results, strict=True) if m is not None and p >= 0})
            parts = _product_call(item, lies, dtypes, memories)
            # of other calls only those lie as was said on which somebody counts
            made = [p for p, sure in zip(item.outs, item.lies, strict=True) if p >= 0 and (sure or parts)]
        calls.append(parts)
        for p in made:
            m = memories[p]
            lies[p], dtypes[p] = (m.shape, tuple([s * m.dtype.itemsize for s in m.strides]), m.dtype.itemsize), m.dtype
    ends = [k for k, parts in enumerate(calls) if len(parts) != 1]
    found: list[MachineCalls | int] = []
    users = _users(items, wanted)
    there: set[int] = set()  # memory that is made: another item writes a part of it
    for before, end in pairwise([-1, *ends, len(calls)]):
        run = [parts[0] for parts in calls[before + 1 : end]]
        if run:
            inside = range(before + 1, end)
            mine = [p for c in run for p in c.makes]
            temporary = {p: _size(memories[p]) for p in mine if all([k in inside for k in users.get(p, ())])}
            found.append(
                MachineCalls(before + 1, end, run, {p: memories[p] for p in mine if p not in temporary and p not in there}, temporary)
            )
            there |= set(mine)
        if end == len(calls):
            break
        mine = [o.place for o in items[end].outs] if isinstance(items[end], Fused) else []
        if calls[end]:
            found.append(MachineCalls(end, end + 1, calls[end], {p: memories[p] for p in mine if p not in there}, {}, shared=True))
        else:
            found.append(end)
        there |= set(mine)
    return found


def _users(items: Sequence[Any], wanted: Sequence[int]) -> dict[int, list[int]]:
    """Which items read each place, or write a part of it; one more than there are stands for the plan's caller."""
    found: dict[int, list[int]] = {}
    for k, item in enumerate(items):
        for p in [*item.reads, *[o.place for o in item.outs]] if isinstance(item, Fused) else places_in(item.given):
            found.setdefault(p, []).append(k)
    for place in wanted:
        found.setdefault(place, []).append(len(items))
    return found


def _group_calls(group: Fused, memories: dict[int, Memory]) -> Sequence[_Call]:
    """A group as one call, or as one for each thread that takes a part of it; none where its machine function may give up."""
    operands = [*group.outs, *group.inputs]
    if 0 in group.shape or any(
        [min(memories[o.place].strides, default=0) < 0 or memories[o.place].device.type != "cpu" for o in group.outs]
    ):
        return ()
    lies = tuple([(o.shape, tuple([s * o.dtype.itemsize for s in o.strides]), o.dtype.itemsize) for o in operands])
    arranged = arrange(group.shape, lies, len(group.outs), len(group.shape) - group.kept)
    program = None if arranged is None else program_of(group.tape, arranged)
    if arranged is None or program is None or program.gives_up:
        return ()
    return [_part_call(group, program, arranged, part) for part in parts_of(arranged, group.tape.folds)]


def _part_call(group: Fused, program: Program, arranged: Arrangement, part: tuple[int, int, int]) -> _Call:
    """The call for a part of an axis."""
    axis, low, high = part
    sizes = list(arranged.sizes)
    sizes[axis] = high - low
    words, addresses, scratch = sizes, [], []
    for k, (o, steps) in enumerate(zip((*group.outs, *group.inputs), arranged.strides, strict=True)):
        ahead = low * step_along(arranged, k, axis, o.dtype.itemsize)
        if o.dtype != INDEX:
            addresses.append((len(words), o.place, o.first + ahead))
        words += [ahead if o.dtype == INDEX else 0, *steps]  # of Places the address is a place
    for kept, item in enumerate(program.kept):
        scratch.append((len(words), program.row_bytes(arranged, kept)))
        words += [0, 0, 0, item * arranged.sizes[3]]
    numbers = [
        (len(words) + k, "d" if NUMBERS[d] == "f64" else "q", x)
        for k, (d, x) in enumerate(zip(group.tape.numbers, group.numbers, strict=True))
    ]
    words += [0] * len(numbers)
    makes = list(dict.fromkeys([o.place for o in group.outs]))
    return _Call(program.address, words, True, addresses, numbers, scratch, list(group.reads), makes)


def _product_call(item: Any, lies: dict[int, Lies], dtypes: dict[int, np.dtype], memories: dict[int, Memory]) -> Sequence[_Call]:
    """A product of two matrices as BLAS's own function; none for any other call."""
    if item.name != "matmul" or item.corner != FORWARD or len(item.outs) != 1 or item.outs[0] < 0:
        return ()
    (place,) = item.outs
    given = []
    for x in item.given:
        if type(x) is Whole and x.place in lies:
            given.append((x.place, lies[x.place][0], lies[x.place][1], dtypes[x.place], 0))
        elif type(x) is View:
            given.append((x.place, x.shape, tuple([s * x.dtype.itemsize for s in x.strides]), x.dtype, x.first))
        else:
            return ()
    made = memories[place]
    if made.device.type != "cpu" or made.strides != contiguous_strides(made.shape):
        return ()
    (a, _, _, kind, ahead_a), (b, _, _, other, ahead_b) = given
    if kind != other or kind != made.dtype:
        return ()
    found = products.small_call([(shape, strides) for _, shape, strides, _, _ in given], kind)
    if found is None:
        return ()
    address, words, held = found
    addresses = [(products.LEFT, a, ahead_a), (products.RIGHT, b, ahead_b), (products.RESULT, place, 0)]
    return [_Call(address, words, False, addresses, [], [], [a, b], [place], held)]


# -- memory
def _lines(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _size(m: Memory) -> int:
    """Bytes from the first element to behind the last."""
    return _lines((memory_extent(m.shape, m.strides)[1] + 1) * m.dtype.itemsize)


def _arena(calls: Sequence[_Call], sizes: dict[int, int]) -> tuple[dict[int, int], int]:
    """Where each temporary begins, so that two that live at the same time never share a byte, and how many bytes they take: each in the first gap that
    holds it."""
    ends = {p: k for k, c in enumerate(calls) for p in (*c.makes, *c.reads)}
    offsets: dict[int, int] = {}
    living: list[tuple[int, int, int]] = []  # (first byte, end, the call that reads it last), by first byte
    total = 0
    for k, call in enumerate(calls):
        living = [x for x in living if x[2] >= k]
        for p in call.makes:
            if p not in sizes or p in offsets:
                continue
            at = 0
            for first, end, _ in living:
                if at + sizes[p] <= first:
                    break
                at = max(at, end)
            offsets[p] = at
            living = sorted([*living, (at, at + sizes[p], ends[p])])
            total = max(total, at + sizes[p])
    return offsets, total
