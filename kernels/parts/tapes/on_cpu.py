"""Tapes on the CPU: the whole tape as one machine function, or its steps one after the other, with the same bits.

A fused tape computes what its steps would store one by one, each rounded to its type: machine code has no products that are added without a rounding
between, but inside of a formula that asks for them.

What plans hold: `arrange(shape, memories, results, reduced)` says how arrays lie over the tape's space, `program_of(tape, arranged)` is the
Program, whose `bind(arranged, arrays, numbers)` is a call with nothing left to look up, or words for a table of calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.kernels.parts.tapes.cpu import numpy_steps
from tritensor.kernels.parts.tapes.cpu.arrangement import Arrangement as Arrangement
from tritensor.kernels.parts.tapes.cpu.arrangement import arrange, memory
from tritensor.kernels.parts.tapes.cpu.programs import Arranged
from tritensor.kernels.parts.tapes.cpu.programs import Bound as Bound
from tritensor.kernels.parts.tapes.cpu.programs import Program as Program
from tritensor.kernels.parts.tapes.cpu.programs import machine_code as machine_code
from tritensor.kernels.parts.tapes.cpu.programs import program_of as program_of
from tritensor.kernels.parts.tapes.cpu.step_table import StepTable, fused_call, results_of, space_of, step_table, ways
from tritensor.kernels.parts.tapes.tape import Fold, Places, Step, Tape

_KEPT = 4096  # tapes whose calls are kept, and calls of each; when there are more, all are dropped
_Call = StepTable | Arranged | None
_calls: dict[int, tuple[Tape, dict[Any, _Call]]] = {}  # by the tape's identity: a tape is slow to hash


def _call_of(
    making: Callable[..., _Call], tape: Tape, arrays: Sequence[np.ndarray | Places], reduced: int, shape: tuple[int, ...] | None = None
) -> _Call:
    """The call of the whole tape, or of its steps, over arrays that lie like these; `shape` is the space where it is more than they broadcast to."""
    held = _calls.get(id(tape))
    if held is None or held[0] is not tape:
        if len(_calls) >= _KEPT:
            _calls.clear()
        held = _calls[id(tape)] = tape, {}
    memories = tuple([(x.shape, x.strides, x.itemsize) for x in arrays])
    key, known = (making, memories, reduced, shape), held[1]
    try:
        return known[key]
    except KeyError:
        pass
    if len(known) >= _KEPT:
        known.clear()
    space = np.broadcast_shapes(*[m[0] for m in memories]) if shape is None else shape
    found = known[key] = None if 0 in space else making(tape, space, memories, reduced)
    return found


def run(
    tape: Tape, inputs: Sequence[np.ndarray | Places], numbers: Sequence[Any], outs: Sequence[np.ndarray], reduced: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> None:  # fmt: skip
    """outs = the tape of inputs that broadcast to its space (Places where its type is INDEX), whose last `reduced` axes make up a row (None: one where it
    folds, else none); `shape` is the space where it is more than all arrays broadcast to.

    As one machine function where there is one, else step by step.
    """
    reduced = int(tape.folds) if reduced is None else reduced
    if not _by_machine(tape, shape, outs, inputs, numbers, reduced):
        step_by_step(tape, inputs, numbers, outs, reduced, shape)


def step_by_step(
    tape: Tape, inputs: Sequence[np.ndarray | Places], numbers: Sequence[Any], outs: Sequence[np.ndarray], reduced: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> None:  # fmt: skip
    """The same as `run`, a step at a time, each by the machine function of its formula, which all tapes share, or by the formula's body in numpy where
    machine code does not take it: nothing is compiled for the tape. Results are those of the fused function, bit for bit, where it has one."""
    reduced = int(tape.folds) if reduced is None else reduced
    arrays = (*outs, *inputs)
    call = _call_of(step_table, tape, arrays, reduced, shape)
    if call is None or not call(arrays, numbers):
        _one_by_one(tape, inputs, numbers, outs, reduced, shape)


def _one_by_one(
    tape: Tape,
    inputs: Sequence[np.ndarray | Places],
    numbers: Sequence[Any],
    outs: Sequence[np.ndarray],
    reduced: int,
    shape: tuple[int, ...] | None,
) -> None:
    """Each step by itself."""
    # no result lies over an input: then it may be written before others are read
    apart = not any([np.may_share_memory(x, y) for x in inputs if not isinstance(x, Places) for y in outs])
    if shape is None:
        shape = np.broadcast_shapes(*[x.shape for x in (*outs, *inputs)])
    values: list[Any] = [x.reshape((1,) * (len(shape) - x.ndim) + x.shape) for x in inputs]
    kinds = [np.dtype(np.float32) if d.itemsize == 2 and d.kind not in "iu" else d for d in tape.numbers]
    values += [np.full((1,) * len(shape), x, d) for x, d in zip(numbers, kinds, strict=True)]
    for way in ways(tape):
        step, given, told = way.tape.steps[0], [values[v] for v in way.arrays], [values[v] for v in way.numbers]
        space, own, rows = space_of(step, [(1,) * len(shape), *[x.shape for x in given]], shape[len(shape) - reduced :])
        made = []
        for j, dtype in enumerate(results_of(step)):
            target = outs[tape.stores.index(way.first + j)] if apart and way.first + j in tape.stores else None
            made.append(target if target is not None and target.shape == own else np.empty(own, dtype))
        if not _by_machine(way.tape, space, made, given, [x.item() for x in told], rows):
            _by_numpy(step, space, made, [*given, *told], rows)
        values += made
        del given, made
        for v in way.done:
            values[v] = None  # so that the next has its memory
    for v, out in zip(tape.stores, outs, strict=True):
        if values[v] is not out:
            np.copyto(out, values[v].reshape(values[v].shape[values[v].ndim - out.ndim :]))


def _by_machine(
    tape: Tape,
    space: tuple[int, ...] | None,
    outs: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray | Places],
    numbers: Sequence[Any],
    reduced: int,
) -> bool:
    """A tape by its machine function, arrays copied that lie as it does not take them; False where it has none or values are too hard for it."""
    arrays = [*outs, *inputs]
    call = _call_of(fused_call, tape, arrays, reduced, space)
    if call is not None and call(arrays, numbers):
        return True
    shape = np.broadcast_shapes(*[x.shape for x in arrays]) if space is None else space
    if 0 in shape:
        return False
    arranged = arrange(shape, tuple([memory(x) for x in arrays]), len(outs), reduced)
    if arranged is None:
        return _by_machine_copied(tape, shape, outs, inputs, numbers, reduced)
    # of few elements in place, or between each other
    program = program_of(tape, arranged) if isinstance(call, StepTable) else None
    return program is not None and Arranged(program, arranged)(arrays, numbers)


def _by_machine_copied(
    tape: Tape,
    shape: tuple[int, ...],
    outs: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray | Places],
    numbers: Sequence[Any],
    reduced: int,
) -> bool:
    """The same of copies: those that lie side by side, or, where more axes are left than loops have, of whole spaces."""
    made = [np.empty(y.shape, y.dtype) for y in outs]
    for whole in (False, True):
        given = [x if isinstance(x, Places) else np.ascontiguousarray(np.broadcast_to(x, shape) if whole else x) for x in inputs]
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
        numpy_steps.run_step(step, [x.numbers() if isinstance(x, Places) else x for x in [values[p] for p in step.picks]], outs[0])
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
