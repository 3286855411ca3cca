"""Steps of a tape, each a tape of its own, as one table of calls: what runs few elements, without a machine function of the whole."""

from __future__ import annotations

import functools
import math
import struct
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.tapes.cpu.arrangement import Arrangement, Memory, arrange, extent
from tritensor.kernels.parts.tapes.cpu.programs import Arranged, Program, addresses_in, program_of
from tritensor.kernels.parts.tapes.cpu.text import NUMBERS
from tritensor.kernels.parts.tapes.tape import INDEX, Fold, Step, Tape
from tritensor.llvm import workers
from tritensor.llvm.address_table import addresses_of
from tritensor.llvm.loops import SHARED

_CALL = 1 + workers.ARGUMENTS  # words of a call in a table
_LINE = 64  # bytes at whose multiples temporaries begin
_Placed = tuple[Memory, int, int]  # how a value lies; in which array (one more than there are: the temporaries), bytes into it


class Way(NamedTuple):
    """A step as a tape of its own: which values are its arrays and which its numbers, the first of those that it makes, and which nobody asks for
    after it."""

    tape: Tape
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]
    first: int
    done: tuple[int, ...] = ()


@functools.lru_cache(maxsize=4096)
def ways(tape: Tape) -> tuple[Way, ...]:
    """Each step as a tape of one."""
    dtypes, given = tape.dtypes(), len(tape.inputs)
    first, found = given + len(tape.numbers), []
    for step in tape.steps:
        used = list(dict.fromkeys(step.picks if isinstance(step, Step) else (*step.picks, *step.scalars, *step.numbers)))
        numbers = [v for v in used if given <= v < given + len(tape.numbers)]
        arrays = [v for v in used if v not in numbers]
        at = {v: k for k, v in enumerate((*arrays, *numbers))}
        many = 1 if isinstance(step, Step) else len(step.dtypes)

        def moved(places: Sequence[int], at: dict[int, int] = at) -> tuple[int, ...]:
            return tuple([at[v] for v in places])

        own: Step | Fold
        if isinstance(step, Step):
            own = step._replace(picks=moved(step.picks))
        else:
            own = step._replace(picks=moved(step.picks), scalars=moved(step.scalars), numbers=moved(step.numbers))
        stores = tuple(range(len(used), len(used) + many))
        single = Tape(tuple([dtypes[v] for v in arrays]), tuple([dtypes[v] for v in numbers]), (own,), stores)
        found.append(Way(single, tuple(arrays), tuple(numbers), first))
        first += many
    later, known = set(tape.stores), []
    for way in reversed(found):
        known.append(way._replace(done=tuple([v for v in way.arrays if v not in later])))
        later |= set(way.arrays)
    return tuple(reversed(known))


def results_of(step: Step | Fold) -> tuple[np.dtype, ...]:
    """The types of what a step makes."""
    return (step.dtype,) if isinstance(step, Step) else step.dtypes


def space_of(step: Step | Fold, shapes: Sequence[tuple[int, ...]], row: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(space of a step over values of these shapes, shape of what it makes, axes of the space that it folds); `row` are the whole tape's last axes."""
    own = np.broadcast_shapes(*shapes)
    if isinstance(step, Step):
        return own, own, 0
    lead = own[: len(own) - len(row)]
    return (*lead, *row), (*lead, *[1] * len(row)), len(row)


class StepTable:
    """The calls of a tape's steps over arrays that lie so and so, temporaries in one piece of memory."""

    def __init__(self, memories: Sequence[Memory], results: int, drawn: bool) -> None:
        self.addresses_of = addresses_in if drawn else addresses_of
        extents = [extent(m) for m in memories]
        self._outs, self._inputs = list(enumerate(extents[:results])), list(enumerate(extents))[results:]
        self.calls: list[tuple[int, list[int]]] = []  # a function's address and the words of its table
        self.addresses: list[
            tuple[int, int, int, int]
        ] = []  # call, word, which array (one more than there are: the temporaries), bytes into it
        self.numbers: list[tuple[int, int, int, str]] = []  # call, word, which number, how it is packed
        self.temporaries, self.room = len(memories), 0
        self.in_place: set[tuple[int, int]] = set()  # (result, input) that may be the same memory

    def add(
        self, program: Program, arranged: Arrangement, places: Sequence[tuple[int, int]], numbers: Sequence[tuple[int, np.dtype]]
    ) -> None:
        """A call over arrays at these places, (which array, bytes into it), with numbers of the whole tape's, (which, its type)."""
        words, call = list(arranged.sizes), len(self.calls)
        for (which, ahead), steps in zip(places, arranged.strides, strict=True):
            self.addresses.append((call, len(words), which, ahead))
            words += [0, *steps]
        for kept, item in enumerate(program.kept):
            self.addresses.append((call, len(words), self.temporaries, self.room))
            self.room += program.row_bytes(arranged, kept)
            words += [0, 0, 0, item * arranged.sizes[3]]
        for which, dtype in numbers:
            self.numbers.append((call, len(words), which, "d" if NUMBERS[dtype] == "f64" else "q"))
            words.append(0)
        self.calls.append((program.address, words))

    def ready(self) -> None:
        """Lay out the table: calls first, then what each of them reads."""
        words, starts = array("q"), []
        for address, _ in self.calls:
            words.extend([address, *[0] * (_CALL - 1)])
        for _, own in self.calls:
            starts.append(len(words))
            words.extend(own)
        self._words, self._count = words, len(self.calls)
        self._tables = [(k * _CALL + 1, 8 * start) for k, start in enumerate(starts)]
        self._addresses = [(starts[call] + word, which, ahead) for call, word, which, ahead in self.addresses]
        self._numbers = [(8 * (starts[call] + word), which, struct.Struct(code).pack_into) for call, word, which, code in self.numbers]

    def __call__(self, arrays: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """Run them, results first; False where a result lies over an input, which may be read after it was written, and nothing is done; and where
        values were too hard for some step."""
        room = np.empty(self.room, np.uint8)
        at = self.addresses_of((*arrays, room))
        for y, (low, high) in self._outs:
            first, end = at[y] + low, at[y] + high
            for x, (least, most) in self._inputs:
                if at[x] + least < end and first < at[x] + most and not (at[x] == at[y] and (y, x) in self.in_place):
                    return False
        words = self._words[:]
        base = words.buffer_info()[0]
        for place, start in self._tables:
            words[place] = base + start
        for place, which, ahead in self._addresses:
            words[place] = at[which] + ahead
        for byte, which, pack in self._numbers:
            pack(words, byte, numbers[which])
        return not workers.call_all(base, self._count)


def fused_call(tape: Tape, shape: tuple[int, ...], memories: Sequence[Memory], reduced: int) -> StepTable | Arranged | None:
    """The call of a tape's own machine function with (arrays, numbers), results first; None where it has none for these arrays."""
    results = len(tape.stores)
    arranged = arrange(shape, tuple(memories), results, reduced)
    program = None if arranged is None else program_of(tape, arranged)
    if arranged is None or program is None:
        return None
    if arranged.elements >= SHARED:
        return Arranged(program, arranged)
    table = StepTable(memories, results, INDEX in tape.inputs)
    numbers = [(k, d) for k, d in enumerate(tape.numbers)]
    table.add(program, arranged, [(k, 0) for k in range(len(memories))], numbers)
    if not program.gives_up:
        table.in_place = {(y, x) for y in range(results) for x in range(results, len(memories)) if memories[x] == memories[y]}
    table.ready()
    return table


def step_table(tape: Tape, shape: tuple[int, ...], memories: Sequence[Memory], reduced: int) -> StepTable | None:
    """The table of a tape's steps over few elements, which no threads share, results first. None of many, where some step has no machine function, and
    where results are not what steps write."""
    if math.prod(shape) >= SHARED:
        return None
    table, results, ndim = StepTable(memories, len(tape.stores), INDEX in tape.inputs), len(tape.stores), len(shape)
    known: list[Any] = [_all_axes(m, ndim, results + k) for k, m in enumerate(memories[results:])] + [None] * len(tape.numbers)
    targets = {v: _all_axes(memories[k], ndim, k) for k, v in reversed(list(enumerate(tape.stores)))}
    for way in ways(tape):
        step = way.tape.steps[0]
        given = [known[v] for v in way.arrays]
        space, own, rows = space_of(step, [(1,) * ndim, *[g[0][0] for g in given]], shape[ndim - reduced :])
        made = []
        for j, dtype in enumerate(results_of(step)):
            target = targets.get(way.first + j)
            if target is None or target[0][0] != own:
                target = (own, _side_by_side(own, dtype.itemsize), dtype.itemsize), len(memories), table.room
                table.room += -(-math.prod(own) * dtype.itemsize // _LINE) * _LINE
            made.append(target)
        arrays = [*made, *given]
        arranged = arrange(space, tuple([a[0] for a in arrays]), len(made), rows)
        program = None if arranged is None else program_of(way.tape, arranged)
        if arranged is None or program is None:
            return None
        told = [v - len(tape.inputs) for v in way.numbers]
        table.add(program, arranged, [a[1:] for a in arrays], [(k, tape.numbers[k]) for k in told])
        known += made
    for k, v in enumerate(tape.stores):
        if known[v][1] != k:  # written elsewhere: a result that is an input, or twice the same, or lies over more than its value has
            return None
    table.ready()
    return table


def _all_axes(m: Memory, ndim: int, which: int) -> _Placed:
    lead = ndim - len(m[0])
    return ((1,) * lead + m[0], (0,) * lead + m[1], m[2]), which, 0


def _side_by_side(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of a C-ordered array."""
    found = []
    for n in reversed(shape):
        found.append(item)
        item *= n
    return tuple(reversed(found))
