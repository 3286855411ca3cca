"""Steps on the GPU: one launch over a table of the addresses of all parameters, their gradients and their states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.thread_state import here
from tritensor.kernels.optimizers.step_formula import StepFormula, prepare
from tritensor.kernels.parts.allocation import allocate
from tritensor.ops.array import CudaArray, from_host
from tritensor.ops.replay import Corner, address_of

BLOCK = 1024  # elements of a program
ROWS = 128  # parameters of a program of `_advance`
ADDRESSES = (16, 256)  # that a launch of `_point` takes: 2 KB of the 4 KB of arguments
_F64, _I64, _I32 = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.int32)


@triton.jit
def _part(
    at, numbers, like, i, n,
    FORMULA: tl.constexpr, ARRAYS: tl.constexpr, NUMBERS: tl.constexpr, FLAGS: tl.constexpr, ALIGNED: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    kind = like.dtype.element_ty
    compute_type = tl.float64 if kind == tl.float64 else tl.float32
    mask = i < n
    places = ()
    values = ()
    for k in tl.static_range(ARRAYS):
        place = tl.load(at + 1 + k).to(tl.pointer_type(kind)) + i
        if ALIGNED:
            place = tl.multiple_of(place, (16,))
        x = tl.load(place, mask=mask, other=1) if MASKED else tl.load(place)
        places = places + (place,)  # type: ignore[assignment]
        values = values + (x.to(compute_type),)  # type: ignore[assignment]
    decay = tl.load(numbers).to(compute_type)
    p, g = prepare(values[0], values[1], decay, FLAGS[0], FLAGS[1])  # type: ignore[misc]
    args = (p, g)
    for k in tl.static_range(ARRAYS - 2):
        args = args + (values[2 + k],)  # type: ignore[assignment]
    for k in tl.static_range(NUMBERS):
        args = args + (tl.load(numbers + 1 + k).to(compute_type),)  # type: ignore[assignment]
    for k in tl.static_range(len(FLAGS) - 2):
        args = args + (FLAGS[2 + k],)  # type: ignore[assignment]
    made = FORMULA(*args)
    for k in tl.static_range(ARRAYS - 1):
        y = made[k].to(kind)
        place = places[0] if k == 0 else places[1 + k]  # type: ignore[misc]
        if MASKED:
            tl.store(place, y, mask=mask)
        else:
            tl.store(place, y)


# (p, *states) = FORMULA(p, g, *states, *numbers) for the part of a parameter that `parts` gives this program, (row of the table, block); without it of row 0;
# nothing where found_inf > 0
@triton.jit
def _step(
    table, parts, numbers, like, found_inf,
    FORMULA: tl.constexpr, ARRAYS: tl.constexpr, NUMBERS: tl.constexpr, FLAGS: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    row = program * 0
    start = program * BLOCK
    if parts is not None:
        row = tl.load(parts + 2 * program)
        start = tl.load(parts + 2 * program + 1) * BLOCK
    at = table + row * (1 + ARRAYS)
    n = tl.load(at)
    if found_inf is not None:
        n = tl.where(tl.load(found_inf) > 0, 0, n)
    i = start + tl.arange(0, BLOCK)  # (BLOCK,)
    own = numbers + row * (1 + NUMBERS)
    # A mask with a bound that does not divide by 16 makes every access scalar: only the last block pays for it.
    if start + BLOCK <= n:
        _part(at, own, like, i, n, FORMULA, ARRAYS, NUMBERS, FLAGS, ALIGNED, False)
    else:
        _part(at, own, like, i, n, FORMULA, ARRAYS, NUMBERS, FLAGS, ALIGNED, True)


# table[first + k step] = values[k] for k < count: addresses, and numbers of elements
@triton.jit
def _note(table, values, first, step, count, N: tl.constexpr):
    for k in tl.static_range(N):
        if k < count:
            tl.store(table + first + k * step, values[k].to(tl.int64))


# step += 1; (*other scalars, *numbers) = FORMULA(step, *other scalars, lr, *settings), before the numbers the decay; nothing where found_inf > 0
@triton.jit
def _advance(
    scalars, numbers, rate, settings, n, weight_decay, found_inf,
    FORMULA: tl.constexpr, SCALARS: tl.constexpr, KEPT: tl.constexpr, NUMBERS: tl.constexpr, DECAY: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # (ROWS,)
    if found_inf is not None:
        n = tl.where(tl.load(found_inf) > 0, 0, n)
    mask = i < n
    zero = tl.zeros((ROWS,), tl.float64)
    args = (zero,)
    if SCALARS > 0:
        args = (tl.load(scalars + i * SCALARS, mask=mask, other=0).to(tl.float64) + 1,)
        tl.store(scalars + i * SCALARS, args[0].to(scalars.dtype.element_ty), mask=mask)
    for k in tl.static_range(KEPT):
        args = args + (tl.load(scalars + i * SCALARS + 1 + k, mask=mask, other=0).to(tl.float64),)  # type: ignore[assignment]
    lr = zero + settings[0]
    if rate is not None:
        lr = zero + tl.load(rate).to(tl.float64)
    args = args + (lr,)  # type: ignore[assignment]
    for k in tl.static_range(len(settings) - 1):
        args = args + (zero + settings[1 + k],)  # type: ignore[assignment]
    made = FORMULA(*args)
    for k in tl.static_range(KEPT):
        tl.store(scalars + i * SCALARS + 1 + k, (zero + made[k]).to(scalars.dtype.element_ty), mask=mask)
    kind = numbers.dtype.element_ty
    decay = 1 - lr * weight_decay if DECAY == 2 else zero + weight_decay
    tl.store(numbers + i * (1 + NUMBERS), decay.to(kind), mask=mask)
    for k in tl.static_range(NUMBERS):
        tl.store(numbers + i * (1 + NUMBERS) + 1 + k, (zero + made[KEPT + k]).to(kind), mask=mask)


def advance(
    made: StepFormula, numbers: CudaArray, scalars: CudaArray | None, rate: CudaArray | None, settings: Sequence[float], weight_decay: float, decay: int,
    found_inf: CudaArray | None = None,
) -> None:  # fmt: skip
    """Move the scalars (n, c) of n parameters on by a step and write its numbers (n, 1 + count), in one launch; nothing where found_inf is above 0."""
    launch(
        _advance, (triton.cdiv(numbers.shape[0], ROWS),), scalars, numbers, rate, tuple([np.float64(s) for s in settings]), np.int64(numbers.shape[0]),
        np.float64(weight_decay), found_inf, FORMULA=made.numbers, SCALARS=len(made.scalars), KEPT=max(len(made.scalars) - 1, 0), NUMBERS=made.count,
        DECAY=decay, ROWS=ROWS,
    )  # fmt: skip


def _launch_step(
    made: StepFormula, programs: int, table: CudaArray, parts: CudaArray | None, numbers: CudaArray, like: CudaArray, variant: tuple[Any, ...],
    aligned: bool, found_inf: CudaArray | None = None,
) -> None:  # fmt: skip
    maximize, decay, flags = variant
    launch(
        _step, (programs,), table, parts, numbers, like, found_inf, FORMULA=made.formula, ARRAYS=2 + len(made.states), NUMBERS=made.count,
        FLAGS=(maximize, decay, *flags), ALIGNED=aligned, BLOCK=BLOCK,
    )  # fmt: skip


def step_one(made: StepFormula, row: Sequence[CudaArray], numbers: CudaArray, variant: tuple[Any, ...]) -> None:
    """Step one parameter, (p, g, *states) dense and laid out alike: two launches."""
    n = row[0].size
    table = allocate((1 + len(row),), _I64, row[0])
    values = (np.int64(n), *row)
    launch(_note, (1,), table, values, np.int64(0), np.int64(1), np.int32(len(values)), N=len(values))
    aligned = not any([x.pointer % 16 for x in row])
    _launch_step(made, triton.cdiv(n, BLOCK), table, None, numbers, row[0], variant, aligned)


# Steps are replayed as an op's calls are. What differs from step to step is in the memory of the tables, or an address, or a number.
@cache
def _step_corner(made: StepFormula, variant: tuple[Any, ...], aligned: bool) -> Corner:
    """Both launches of a step of all parameters in a table: their numbers, then they themselves."""

    def step(
        table: CudaArray, parts: CudaArray, like: CudaArray, numbers: CudaArray, scalars: CudaArray | None, rate: CudaArray | None,
        found_inf: CudaArray | None, weight_decay: float, *settings: float,
    ) -> None:  # fmt: skip
        advance(made, numbers, scalars, rate, settings, weight_decay, variant[1], found_inf)
        _launch_step(made, parts.shape[0], table, parts, numbers, like, variant, aligned, found_inf)

    step.uniform = True  # type: ignore[attr-defined]  # a schedule's learning rates share one recording
    return Corner(step, f"{made.name}_step forward")


@cache
def _note_corner(made: StepFormula) -> Corner:
    """The launches that write the addresses of gradients into a table."""

    def note(table: CudaArray, *gradients: CudaArray) -> None:
        width = table.shape[1]
        for start in range(0, len(gradients), ADDRESSES[-1]):
            some = [address_of(g) for g in gradients[start : start + ADDRESSES[-1]]]
            room = next(n for n in ADDRESSES if n >= len(some))
            given = (*some, *[np.int64(0)] * (room - len(some)))
            launch(_note, (1,), table, given, np.int64(start * width + 2), np.int64(width), np.int32(len(some)), N=room)

    return Corner(note, f"{made.name}_step forward")


class GpuTable:
    """The addresses of some parameters of one type, (p, g, *states) each, all dense and laid out alike, on the device.

    What it points to must live as long as it does, but for the gradients, whose addresses each step may change: they are written there by a
    launch, so that a CUDA graph can hold a step.
    """

    def __init__(self, made: StepFormula, rows: Sequence[Sequence[CudaArray]]) -> None:
        first = rows[0][0]
        on, width = first.device, 1 + len(rows[0])
        self.made, self.like = made, first
        host = np.array([[row[0].size, *[x.pointer for x in row]] for row in rows], _I64).reshape(-1, width)
        self.gradients: list[int] = []  # what the table on the device holds
        self.captured = False  # a graph writes its own addresses at each replay: once there is one, nobody knows what the table holds
        self.aligned = not (host[:, [1, *range(3, width)]] % 16).any()
        blocks = [-(-int(n) // BLOCK) for n in host[:, 0]]
        parts = np.array([(row, part) for row, many in enumerate(blocks) for part in range(many)], _I64).reshape(-1, 2)
        self.parts = from_host(parts, on)
        self.table = from_host(host, on)
        self.numbers = allocate((len(rows), 1 + made.count), _F64, first)

    def run(
        self, gradients: Sequence[CudaArray], scalars: CudaArray | None, rate: CudaArray | None, settings: Sequence[float], weight_decay: float,
        variant: tuple[Any, ...], found_inf: CudaArray | None = None,
    ) -> None:  # fmt: skip
        """Step all parameters, and move their scalars (n, c) on; neither where found_inf, a number on the device, is above 0.

        `rate`, a number on the device, stands for the first of the settings.
        """
        addresses = [g.pointer for g in gradients]
        self.captured |= here.capture is not None
        # gradients that are zeroed in place, and those of a captured step, stay where they are: the launch is spared
        if addresses != self.gradients or self.captured:
            self.gradients = addresses
            _note_corner(self.made)(self.table, *gradients)
        aligned = self.aligned and not any([a % 16 for a in addresses])
        step = _step_corner(self.made, variant, aligned)
        step(self.table, self.parts, self.like, self.numbers, scalars, rate, found_inf, weight_decay, *settings)
