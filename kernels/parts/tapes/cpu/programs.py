"""Machine functions of tapes: compiled once for a tape and the kinds of its arrays, bound to arrays, called by one thread or several."""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.tapes.cpu.arrangement import AXES, FOURS, TILE, Arrangement, extent, memory
from tritensor.kernels.parts.tapes.cpu.text import LANES, NUMBERS, machine_text
from tritensor.kernels.parts.tapes.tape import INDEX, Places, Tape
from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.address_table import addresses_of
from tritensor.llvm.loops import SHARED

_WORK = 1000  # steps of numpy's search for an element that two arrays share
_WORD, _NUMBER = struct.Struct("q"), struct.Struct("d")
_LINE = 64  # bytes of a line of the cache
_TURNS, _FOURS = 2, 4  # vectors in one turn of the walk that writes; where blocks of random words are shared among them


class Program:
    """A tape's machine function for arrays of some kinds. `gives_up`: it may find values that it cannot do, once it has written others: then no result may
    lie where an input does, and the steps are to be run one by one."""

    def __init__(self, tape: Tape, function: Any, gives_up: bool, kept: tuple[int, ...]) -> None:
        self.tape, self.function, self.gives_up, self.kept = tape, function, gives_up, kept
        self.address = workers.address(function)
        self.drawn = INDEX in tape.inputs
        self.arrays = len(tape.stores) + len(tape.inputs) + len(kept)
        codes = "".join(["d" if NUMBERS[d] == "f64" else "q" for d in tape.numbers])
        self.table = struct.Struct(f"{AXES + 4 * self.arrays}q{codes}")

    def bind(self, arranged: Arrangement, arrays: Sequence[Any], numbers: Sequence[Any] = ()) -> Bound | None:
        """The call of it with arrays, results first, that lie as arranged, shared among threads where they are large; None where a result lies over an
        input otherwise than element on element."""
        places = addresses_in(arrays) if self.drawn else addresses_of(arrays)
        return Bound(self, arranged, arrays, places, numbers) if _apart(arrays, places, len(self.tape.stores), self.gives_up) else None

    def row_bytes(self, arranged: Arrangement, kept: int) -> int:
        """How much of a thread's memory one of the values takes that are kept of a row, in whole lines of the cache."""
        return -(-self.kept[kept] * arranged.sizes[2] * arranged.sizes[3] // _LINE) * _LINE


class Arranged(NamedTuple):
    """A program with the arrangement of its arrays."""

    program: Program
    arranged: Arrangement

    def __call__(self, arrays: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """Run it, results first; False where a result lies over an input otherwise than element on element, or values were too hard."""
        bound = self.program.bind(self.arranged, arrays, numbers)
        return bound is not None and bound()


class Bound:
    """A call whose arrays and numbers are known: `bound()` is True where it was done, False where values were too hard.

    For tables of calls: `address` is the function's, `words` are the arguments of its parts, one each, all of which have to be called, by whichever
    thread. A call of arrays that have moved, or of other numbers, is the same with `move` and `tell`; who moves arrays holds them.
    """

    __slots__ = ("_ahead", "_function", "_held", "_parts", "_program", "_room", "address", "gives_up", "words")

    def __init__(
        self, program: Program, arranged: Arrangement, arrays: Sequence[Any], places: Sequence[int], numbers: Sequence[Any]
    ) -> None:
        self._program, self._function, self.address, self.gives_up = program, program.function, program.address, program.gives_up
        parts, size = parts_of(arranged, program.tape.folds), program.table.size
        self._room = bytearray(size * len(parts))
        rows = [program.row_bytes(arranged, k) for k in range(len(program.kept))]
        scratch = np.empty(len(parts) * sum(rows), np.uint8)
        free = addresses_of((scratch,))[0]
        self._ahead: list[list[int]] = []  # of each part: where it begins in each array
        for k, (axis, low, high) in enumerate(parts):
            sizes = list(arranged.sizes)
            sizes[axis] = high - low
            ahead = [low * step_along(arranged, i, axis, x.itemsize) for i, x in enumerate(arrays)]
            words = [(at + a, *s) for at, a, s in zip(places, ahead, arranged.strides, strict=True)]
            for item, reach in zip(program.kept, rows, strict=True):
                words.append((free, 0, 0, item * arranged.sizes[3]))
                free += reach
            program.table.pack_into(self._room, k * size, *sizes, *itertools.chain(*words), *numbers)
            self._ahead.append(ahead)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._room))
        self.words = tuple([at + k * size for k in range(len(parts))])
        self._parts = [(w,) for w in self.words]
        self._held = scratch, tuple(arrays)  # their memory must outlive the addresses

    def __call__(self) -> bool:
        if len(self.words) == 1:
            return not self._function(self.words[0])
        answer = threads.call_parts(self.address, self._parts) if threads.free() > 1 else None
        if answer is None:
            answer = max([self._function(w) for w in self.words])
        return not answer

    def move(self, which: int, address: int) -> None:
        """An array, counted from the first result, lies at another address, with the strides that it had."""
        for k, ahead in enumerate(self._ahead):
            _WORD.pack_into(self._room, k * self._program.table.size + 8 * (AXES + 4 * which), address + ahead[which])

    def tell(self, which: int, number: Any) -> None:
        """One of the tape's numbers is another."""
        program = self._program
        pack = _NUMBER if NUMBERS[program.tape.numbers[which]] == "f64" else _WORD
        for k in range(len(self._ahead)):
            pack.pack_into(self._room, k * program.table.size + 8 * (AXES + 4 * program.arrays + which), number)


def addresses_in(arrays: Sequence[Any]) -> list[int]:
    """Where each array's elements are; of Places 0, so that an address is a place."""
    known = iter(addresses_of([x for x in arrays if type(x) is not Places]))
    return [0 if type(x) is Places else next(known) for x in arrays]


def _apart(arrays: Sequence[Any], places: Sequence[int], results: int, gives_up: bool) -> bool:
    """Whether no input lies where a result is written but element on element; where the function may give up, none at all."""
    ends = [(at + low, at + high) for at, (low, high) in zip(places, [extent(memory(x)) for x in arrays], strict=True)]
    for i in range(results):
        low, high = ends[i]
        for k in range(len(arrays)):
            if k != i and ends[k][0] < high and low < ends[k][1]:
                x, y = arrays[k], arrays[i]
                same = places[k] == places[i] and x.shape == y.shape and x.strides == y.strides and x.itemsize == y.itemsize
                if (gives_up or k < results or not same) and _share(x, y):
                    return False
    return True


def _share(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have an element in common, as the halves of rows have not; True where that is hard to say."""
    try:
        return np.shares_memory(x, y, max_work=_WORK)  # type: ignore[arg-type]  # any number will do
    except np.exceptions.TooHardError:
        return True


def step_along(arranged: Arrangement, i: int, axis: int, itemsize: int) -> int:
    """Bytes from one place of an axis to the next in one of the arrays."""
    return arranged.strides[i][axis] if axis < 3 else itemsize if arranged.kinds[i] == TILE else 0


def parts_of(arranged: Arrangement, folds: bool) -> list[tuple[int, int, int]]:
    """(axis, first, end) of the parts for threads: of the longest axis that may be shared, of whole rows where those are folded."""
    shared = arranged.sizes[:2] if folds else arranged.sizes
    axis = max(range(len(shared)), key=lambda d: shared[d])
    size, parts = shared[axis], 1
    piece = 64 * LANES if axis == 3 else 1
    if arranged.elements >= SHARED:
        parts = max(min(threads.count(), size // piece), 1)
    ends = [min(-(-size // piece) * k // parts * piece, size) for k in range(parts)] + [size]
    return [(axis, low, high) for low, high in itertools.pairwise(ends)]


def program_of(tape: Tape, arranged: Arrangement) -> Program | None:
    """The program of a tape over arrays that lie as arranged, results first; None where there is none."""
    kinds = arranged.kinds
    if INDEX in tape.inputs:
        fours = [all([n == 1 or s % 4 == 0 for n, s in zip(arranged.sizes[:3], own, strict=True)]) for own in arranged.strides]
        given = (*[None] * len(tape.stores), *tape.inputs)
        kinds = tuple([FOURS if t == INDEX and k == TILE and four else k for t, k, four in zip(given, kinds, fours, strict=True)])
    return machine_code(tape, kinds)


@functools.lru_cache(maxsize=4096)
def machine_code(tape: Tape, kinds: tuple[str, ...]) -> Program | None:
    """The program of a tape over arrays of these kinds (`Arrangement.kinds`, or FOURS), the results first, compiled when it is first asked for or found on
    disk.

    None where there is none: no machine code for this processor (see compiler.refusal), formulas of more than `maths` has for vectors, types that loops
    do not store (8- and 16-bit integers, complex), reductions in words that folds.py has not.
    """
    if compiler.refusal():
        return None
    made = machine_text(tape, kinds, _FOURS if FOURS in kinds else _TURNS)
    if made is None:
        return None
    return Program(tape, compiler.build_typed(made.module, ctypes.c_int64, ctypes.c_void_p), made.gives_up, made.kept)
