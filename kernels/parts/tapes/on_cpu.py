"""Tapes on the CPU: the whole tape as one machine function, or its steps one after the other, with the same bits.

A fused tape computes what its steps would store one by one, each rounded to its type: machine code has no products that are added without a rounding
between, but inside of a formula that asks for them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.tapes.cpu import numpy_steps
from tritensor.kernels.parts.tapes.cpu.arrangement import TILE, Arrangement, arrange, memory
from tritensor.kernels.parts.tapes.cpu.text import LANES, NUMBERS, machine_text
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape
from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.loops import SHARED

_AXES = 4
_WORK = 1000  # steps of numpy's search for an element that two arrays share
_TURNS = 4  # vectors in one turn of the walk that writes


class Program:
    """A tape's machine function for arrays of some kinds. `gives_up`: it may find values that it cannot do, once it has written others: then no result may
    lie where an input does, and the steps are to be run one by one."""

    def __init__(self, tape: Tape, function: Any, gives_up: bool) -> None:
        self.tape, self.function, self.gives_up = tape, function, gives_up
        self.address = workers.address(function)
        self.arrays = len(tape.stores) + len(tape.inputs)
        codes = "".join(["d" if NUMBERS[d] == "f64" else "q" for d in tape.numbers])
        self.table = struct.Struct(f"{_AXES + 4 * self.arrays}q{codes}")

    def bind(self, arranged: Arrangement, arrays: Sequence[np.ndarray], numbers: Sequence[Any] = ()) -> Bound | None:
        """The call of it with arrays, results first, that lie as arranged, shared among threads where they are large; None where a result lies over an
        input otherwise than element on element."""
        places = [x.__array_interface__["data"][0] for x in arrays]
        if not _apart(arrays, places, len(self.tape.stores), self.gives_up):
            return None
        parts = _parts(arranged, self.tape.folds)
        room = bytearray(self.table.size * len(parts))
        for k, (axis, low, high) in enumerate(parts):
            sizes = list(arranged.sizes)
            sizes[axis] = high - low
            words = [
                (at + low * _stride(arranged, i, axis, arrays[i].itemsize), *s)
                for i, (at, s) in enumerate(zip(places, arranged.strides, strict=True))
            ]
            self.table.pack_into(room, k * self.table.size, *sizes, *itertools.chain(*words), *numbers)
        return Bound(self, room, len(parts), tuple(arrays))


class Bound:
    """A call whose arrays and numbers are known: `bound()` is True where it was done, False where values were too hard.

    For tables of calls: `address` is the function's, `words` are the arguments of its parts, all of which have to be called, by whichever thread.
    """

    __slots__ = ("_function", "_held", "_parts", "address", "gives_up", "words")

    def __init__(self, program: Program, room: bytearray, parts: int, held: tuple[np.ndarray, ...]) -> None:
        self._function, self.address, self.gives_up = program.function, program.address, program.gives_up
        at = ctypes.addressof(ctypes.c_char.from_buffer(room))
        self.words = tuple([at + k * program.table.size for k in range(parts)])
        self._parts = [(w,) for w in self.words]
        self._held = room, held  # their memory must outlive the addresses

    def __call__(self) -> bool:
        if len(self.words) == 1:
            return not self._function(self.words[0])
        answer = threads.call_parts(self.address, self._parts) if threads.free() > 1 else None
        if answer is None:
            answer = max([self._function(w) for w in self.words])
        return not answer


def _apart(arrays: Sequence[np.ndarray], places: Sequence[int], results: int, gives_up: bool) -> bool:
    """Whether no input lies where a result is written but element on element; where the function may give up, none at all."""
    ends = [_extent(x, at) for x, at in zip(arrays, places, strict=True)]
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
        return np.shares_memory(x, y, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def _extent(x: np.ndarray, at: int) -> tuple[int, int]:
    """The addresses that an array reaches over."""
    if x.flags.c_contiguous:
        return at, at + x.nbytes
    low = sum([s * (n - 1) for n, s in zip(x.shape, x.strides, strict=True) if s < 0])
    high = sum([s * (n - 1) for n, s in zip(x.shape, x.strides, strict=True) if s > 0])
    return at + low, at + high + x.itemsize


def _stride(arranged: Arrangement, i: int, axis: int, itemsize: int) -> int:
    return arranged.strides[i][axis] if axis < 3 else itemsize if arranged.kinds[i] == TILE else 0


def _parts(arranged: Arrangement, folds: bool) -> list[tuple[int, int, int]]:
    """(axis, first, end) of the parts for threads: of the longest axis that may be shared, of whole rows where those are folded."""
    shared = arranged.sizes[:2] if folds else arranged.sizes
    axis = max(range(len(shared)), key=lambda d: shared[d])
    size, parts = shared[axis], 1
    piece = 64 * LANES if axis == 3 else 1
    if arranged.count >= SHARED:
        parts = max(min(threads.count(), size // piece), 1)
    ends = [min(-(-size // piece) * k // parts * piece, size) for k in range(parts)] + [size]
    return [(axis, low, high) for low, high in itertools.pairwise(ends)]


@functools.lru_cache(maxsize=4096)
def machine_code(tape: Tape, kinds: tuple[str, ...]) -> Program | None:
    """The program of a tape over arrays of these kinds (`Arrangement.kinds`), the results first, compiled when it is first asked for or found on disk.

    None where there is none: no machine code for this processor (see compiler.refusal), formulas of more than `maths` has for vectors, types that loops
    do not store (8- and 16-bit integers, complex), reductions that ask for an element's index.
    """
    if compiler.refusal():
        return None
    made = machine_text(tape, kinds, _TURNS)
    if made is None:
        return None
    return Program(tape, compiler.build_typed(made.module, ctypes.c_int64, ctypes.c_void_p), made.gives_up)


def run(tape: Tape, inputs: Sequence[np.ndarray], numbers: Sequence[Any], outs: Sequence[np.ndarray], reduced: int | None = None) -> None:
    """outs = the tape of inputs that broadcast to its space, whose last `reduced` axes make up a row (None: one where it folds, else none).

    As one machine function where there is one, else step by step.
    """
    reduced = int(tape.folds) if reduced is None else reduced
    shape = np.broadcast_shapes(*[x.shape for x in (*outs, *inputs)])
    if not _by_machine(tape, shape, outs, inputs, numbers, reduced):
        step_by_step(tape, inputs, numbers, outs, reduced)


class _Way(NamedTuple):
    """A step as a tape of its own: which values are its arrays and which its numbers."""

    tape: Tape
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]
    first: int


@functools.lru_cache(maxsize=4096)
def _ways(tape: Tape) -> tuple[_Way, ...]:
    """Each step as a tape of one."""
    dtypes, given = tape.dtypes(), len(tape.inputs)
    first, found = given + len(tape.numbers), []
    for step in tape.steps:
        used = list(dict.fromkeys(step.picks if isinstance(step, Step) else (*step.picks, *step.scalars, *step.numbers)))
        numbers = [v for v in used if given <= v < given + len(tape.numbers)]
        arrays = [v for v in used if v not in numbers]
        at = {v: k for k, v in enumerate((*arrays, *numbers))}
        many = 1 if isinstance(step, Step) else len(step.dtypes)
        fields = ("picks",) if isinstance(step, Step) else ("picks", "scalars", "numbers")
        own = step._replace(**{f: tuple([at[v] for v in getattr(step, f)]) for f in fields})
        stores = tuple(range(len(used), len(used) + many))
        single = Tape(tuple([dtypes[v] for v in arrays]), tuple([dtypes[v] for v in numbers]), (own,), stores)
        found.append(_Way(single, tuple(arrays), tuple(numbers), first))
        first += many
    return tuple(found)


def step_by_step(
    tape: Tape, inputs: Sequence[np.ndarray], numbers: Sequence[Any], outs: Sequence[np.ndarray], reduced: int | None = None
) -> None:
    """The same as `run`, a step at a time, each by the machine function of its formula, which all tapes share, or by the formula's body in numpy where
    machine code does not take it: nothing is compiled for the tape. Results are those of the fused function, bit for bit, where it has one."""
    reduced = int(tape.folds) if reduced is None else reduced
    shape = np.broadcast_shapes(*[x.shape for x in (*outs, *inputs)])
    lead = len(shape) - reduced
    values: list[Any] = [x.reshape((1,) * (len(shape) - x.ndim) + x.shape) for x in inputs]
    values += [np.full((1,) * len(shape), x, np.float32 if d.itemsize == 2 else d) for x, d in zip(numbers, tape.numbers, strict=True)]
    apart = not any([np.may_share_memory(x, y) for x in inputs for y in outs])
    for way in _ways(tape):
        step, given, told = way.tape.steps[0], [values[v] for v in way.arrays], [values[v] for v in way.numbers]
        own = np.broadcast_shapes((1,) * len(shape), *[x.shape for x in given])
        if isinstance(step, Step):
            space, rows = own, 0
        else:
            space, rows, own = (*own[:lead], *shape[lead:]), reduced, (*own[:lead], *[1] * reduced)
        made = []
        for j, dtype in enumerate(_dtypes(step)):
            target = outs[tape.stores.index(way.first + j)] if apart and way.first + j in tape.stores else None
            made.append(target if target is not None and target.shape == own else np.empty(own, dtype))
        if not _by_machine(way.tape, space, made, given, told, rows):
            _by_numpy(step, space, made, [*given, *told], rows)
        values += made
    for v, out in zip(tape.stores, outs, strict=True):
        if values[v] is not out:
            np.copyto(out, values[v].reshape(values[v].shape[values[v].ndim - out.ndim :]))


def _dtypes(step: Step | Fold) -> tuple[np.dtype, ...]:
    return (step.dtype,) if isinstance(step, Step) else step.dtypes


def _by_machine(
    tape: Tape, shape: tuple[int, ...], outs: Sequence[np.ndarray], inputs: Sequence[np.ndarray], numbers: Sequence[Any], reduced: int
) -> bool:
    """A tape by its machine function, arrays copied that lie as it does not take them; False where it has none or values are too hard for it."""
    if 0 in shape:
        return False
    arrays = [*outs, *inputs]
    arranged = arrange(shape, tuple([memory(x) for x in arrays]), len(outs), reduced)
    if arranged is None:
        return _by_machine_copied(tape, shape, outs, inputs, numbers, reduced)
    program = machine_code(tape, arranged.kinds)
    bound = None if program is None else program.bind(arranged, arrays, [x.item() if isinstance(x, np.ndarray) else x for x in numbers])
    return bound is not None and bound()


def _by_machine_copied(
    tape: Tape, shape: tuple[int, ...], outs: Sequence[np.ndarray], inputs: Sequence[np.ndarray], numbers: Sequence[Any], reduced: int
) -> bool:
    """The same of copies: those that lie side by side, or, where more axes are left than loops have, of whole spaces."""
    made = [np.empty(y.shape, y.dtype) for y in outs]
    for whole in (False, True):
        given = [np.ascontiguousarray(np.broadcast_to(x, shape) if whole else x) for x in inputs]
        if arrange(shape, tuple([memory(x) for x in (*made, *given)]), len(made), reduced) is not None:
            if not _by_machine(tape, shape, made, given, numbers, reduced):
                return False
            for y, out in zip(made, outs, strict=True):
                np.copyto(out, y)
            return True
    return False


def _by_numpy(step: Step | Fold, shape: tuple[int, ...], outs: Sequence[np.ndarray], values: Sequence[np.ndarray], reduced: int) -> None:
    """A step of a tape of one by its formula's body."""
    if isinstance(step, Step):
        numpy_steps.run_step(step, [values[p] for p in step.picks], outs[0])
        return
    lead = len(shape) - reduced
    outer, row = (math.prod(shape[:lead]), 1), (1,) * (2 - reduced) + shape[lead:]

    def spread(places: Sequence[int], to_rows: bool) -> list[np.ndarray]:
        """Values as a space of four axes has them, or with one number for each row."""
        target = (*shape[:lead], *(shape[lead:] if to_rows else (1,) * reduced))
        return [np.broadcast_to(values[p], target).reshape(*outer, *(row if to_rows else (1, 1))) for p in places]

    made = [np.empty((*outer, 1, 1), d) for d in step.dtypes]
    numpy_steps.run_fold(step, (*outer, *row), (spread(step.picks, True), spread(step.scalars, False), spread(step.numbers, False)), made)
    for y, out in zip(made, outs, strict=True):
        out[...] = y.reshape(out.shape)
