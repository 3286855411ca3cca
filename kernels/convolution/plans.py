"""Plans of the cells that a convolution's taps read on the CPU, and their tables for machine code, made once for each geometry."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.convolution.geometry import Geometry, Sizes


class Plan(NamedTuple):
    """Outputs `outs` of an image `size`: tap t of output o reads cell o * stride + shifts[t], or zero where there is none."""

    size: Sizes
    outs: Sizes
    stride: Sizes
    shifts: tuple[Sizes, ...]

    @property
    def places(self) -> int:
        return math.prod(self.outs)

    @property
    def bare(self) -> bool:
        """Whether the one tap of every output is the cell at its own place."""
        return self.size == self.outs and self.shifts == ((0,) * len(self.size),) and max(self.stride) == 1

    def part(self, low: int, high: int) -> tuple[Plan, slice]:
        """The same for the outputs [low, high) of the first axis, and the cells of that axis that they read: parts alike are one plan."""
        step, shifts = self.stride[0], [s[0] for s in self.shifts]
        first = min(max(low * step + min(shifts), 0), self.size[0])
        last = max(min((high - 1) * step + max(shifts) + 1, self.size[0]), first)
        moved = tuple([(s[0] + low * step - first, *s[1:]) for s in self.shifts])
        return Plan((last - first, *self.size[1:]), (high - low, *self.outs[1:]), self.stride, moved), slice(first, last)


@functools.lru_cache(maxsize=256)
def of_windows(s: Geometry) -> Plan:
    """The convolution itself: tap i of output r reads stride r + dilation i - padding."""
    shifts = [tuple([i * d - p for i, d, p in zip(tap, s.dilation, s.padding, strict=True)]) for tap in np.ndindex(*s.kernel)]
    return Plan(s.size, s.outs, s.stride, tuple(shifts))


class Phase(NamedTuple):
    """Every stride-th cell of an image from `start` on, which the taps numbered `taps` reach: `plan` reads the results of the convolution."""

    start: Sizes
    taps: tuple[int, ...]
    plan: Plan


@functools.lru_cache(maxsize=256)
def of_phases(s: Geometry) -> tuple[Phase, ...]:
    """The gradient to the input: cell h = start + stride u is read by output u + (start + padding - dilation i) / stride, where that is whole."""
    found = []
    for start in np.ndindex(*[min(a, n) for a, n in zip(s.stride, s.size, strict=True)]):
        outs = tuple([-(-(n - a) // step) for n, a, step in zip(s.size, start, s.stride, strict=True)])
        taps, shifts = [], []
        for number, tap in enumerate(np.ndindex(*s.kernel)):
            reach = [a + p - i * d for a, p, i, d in zip(start, s.padding, tap, s.dilation, strict=True)]
            # a tap falls between the cells of this phase otherwise: it reaches none of them
            if all(r % step == 0 for r, step in zip(reach, s.stride, strict=True)):
                taps.append(number)
                shifts.append(tuple([r // step for r, step in zip(reach, s.stride, strict=True)]))
        found.append(Phase(start, tuple(taps), Plan(s.outs, outs, (1,) * len(outs), tuple(shifts))))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def of_phase_sets(s: Geometry) -> tuple[tuple[Phase, ...], ...]:
    """The phases with those that have one plan together: one product makes them all."""
    sets: dict[Plan, list[Phase]] = {}
    for phase in of_phases(s):
        sets.setdefault(phase.plan, []).append(phase)
    return tuple([tuple(phases) for phases in sets.values()])


class Table(NamedTuple):
    """A plan for vectors of `width` numbers. Vector v of an image's outputs lies from `to[v]` on, its lanes `stored[v]` (bits) are outputs; of tap t
    its lanes `valid[t, v]` are cells of the image: those at `shift[t] + start[v]`, one after the other, or `shift[t] + cells[v]`. In bytes, cells in
    elements."""

    shift: np.ndarray
    start: np.ndarray
    to: np.ndarray
    valid: np.ndarray
    stored: np.ndarray
    cells: np.ndarray | None


def _bits(lanes: np.ndarray) -> np.ndarray:
    """Truths (..., width) as the bits of one number, the first lane's the lowest."""
    packed = np.ascontiguousarray(np.packbits(lanes, axis=-1, bitorder="little"))
    return packed.view({8: np.uint8, 16: np.uint16}[lanes.shape[-1]]).reshape(lanes.shape[:-1])


@functools.lru_cache(maxsize=256)
def table_of(plan: Plan, width: int, item: int) -> Table:
    """The vectors lie across rows where an image's rows of outputs follow one another as its rows of cells do; else along rows that are long enough,
    or their cells are told one by one."""
    pitch = np.array(contiguous_strides(plan.size))
    stride, shifts = np.array(plan.stride), np.array(plan.shifts).reshape(-1, len(plan.size))
    at = np.indices(plan.outs).reshape(len(plan.outs), -1).T  # (places, axes)
    base = (at * stride) @ pitch
    inside = np.ones((len(shifts), 1), bool)
    for axis, n in enumerate(plan.size):
        cell = np.arange(plan.outs[axis]) * stride[axis] + shifts[:, axis, None]
        inside = (inside[:, :, None] & ((cell >= 0) & (cell < n))[:, None]).reshape(len(shifts), -1)
    row = plan.outs[-1]
    # rows follow one another, as under stride 1 without padding: vectors need not end with a row
    if bool((np.diff(base) == 1).all()):
        lanes, told = [(p, min(p + width, len(base))) for p in range(0, len(base), width)], False
    elif plan.stride[-1] == 1 and 2 * row >= width:
        lanes, told = [(p, min(p + width, r + row)) for r in range(0, len(base), row) for p in range(r, r + row, width)], False
    else:
        lanes, told = [(p, min(p + width, len(base))) for p in range(0, len(base), width)], True
    first, ends = (np.array(v, np.int64) for v in zip(*lanes, strict=True))
    lane = first[:, None] + np.arange(width)  # (vectors, width)
    there = lane < ends[:, None]
    lane = np.minimum(lane, len(base) - 1)
    return Table(
        np.ascontiguousarray(shifts @ pitch, np.int64) * item,
        base[first].astype(np.int64) * item,
        first * item,
        _bits(inside[:, lane] & there),
        _bits(there),
        np.ascontiguousarray(base[lane], np.int32) if told else None,
    )
