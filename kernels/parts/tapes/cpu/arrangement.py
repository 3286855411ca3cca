"""Arrangement of arrays over a tape's space: four axes, (outer, outer, parts of a row, elements of a part), and what each array has of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tritensor.kernels.parts.tapes.tape import Places
from tritensor.kernels.parts.view_arithmetic import merge_axes

ROW, PART, TILE = "row", "part", "tile"  # what an array has a number for: a row, a part of it, an element
FOURS = "fours"  # places of elements, of which every part of a row begins with a multiple of four
AXES = 4
Memory = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides in bytes, bytes of an element


class Arrangement(NamedTuple):
    """A space, its results first: `sizes` of the four axes; for each array its strides over the first three in bytes, and its kind, of which alone machine
    code depends."""

    sizes: tuple[int, int, int, int]
    strides: tuple[tuple[int, int, int], ...]
    kinds: tuple[str, ...]

    @property
    def elements(self) -> int:
        """How many the space has."""
        return math.prod(self.sizes)


def extent(m: Memory) -> tuple[int, int]:
    """(least, end): the bytes that an array of at least one element reaches over, counted from its first element."""
    shape, strides, item = m
    reach = [s * (n - 1) for n, s in zip(shape, strides, strict=True)]
    return sum([r for r in reach if r < 0]), sum([r for r in reach if r > 0]) + item


def memory(x: np.ndarray | Places) -> Memory:
    """What an arrangement asks of an array."""
    return x.shape, x.strides, x.itemsize


@functools.lru_cache(maxsize=4096)
def arrange(shape: tuple[int, ...], arrays: Sequence[Memory], results: int, reduced: int = 0) -> Arrangement | None:
    """Arrays that broadcast to a space whose last `reduced` axes, 1 or 2, make up a row (0: nothing is folded); those of the results come first.

    None for what no loop takes: an innermost axis along which some array neither lies side by side nor holds one number; more axes than four (of rows
    more than two) that some array does not let merge.
    """
    strides = [_expanded(shape, *a[:2]) for a in arrays]
    lead = len(shape) - reduced
    # along memory, as the first array with a number for each element lies
    guide = next((s for s, a in zip(strides, arrays, strict=True) if math.prod(a[0]) == math.prod(shape)), strides[0])
    axes = sorted(range(lead), key=lambda d: -abs(guide[d]))
    merged, steps = merge_axes([shape[d] for d in axes], [[s[d] for d in axes] for s in strides])
    if len(merged) > AXES - 2 * bool(reduced):
        return None
    if reduced:
        row = [d for d in range(lead, len(shape)) if shape[d] != 1]  # never merged: the order of sums is that of the shape alone
        if len(row) > 2:
            return None
        sizes = (*_filled(merged, 2, 1), *_filled([shape[d] for d in row], 2, 1))
        steps = [(*_filled(o, 2, 0), *_filled([s[d] for d in row], 2, 0)) for o, s in zip(steps, strides, strict=True)]
    else:
        sizes, steps = _filled(merged, AXES, 1), [_filled(s, AXES, 0) for s in steps]
        if sizes[3] == 1:  # one element, which lies side by side with nothing
            steps = [(*s[:3], a[2]) for s, a in zip(steps, arrays, strict=True)]
    kinds = []
    for s, a in zip(steps, arrays, strict=True):
        if s[3] not in (0, a[2]):
            return None
        kinds.append(TILE if s[3] else ROW if reduced and not s[2] else PART)
    # a result has a number for each element, or, of reduced rows, for each row
    if any(k == PART or (k == ROW and not reduced) for k in kinds[:results]):
        return None
    return Arrangement(sizes, tuple([s[:3] for s in steps]), tuple(kinds))  # type: ignore[arg-type, misc]


def _expanded(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides over the space, 0 where it has one number for all."""
    return (0,) * (len(shape) - len(own)) + tuple([0 if n == 1 else s for n, s in zip(own, strides, strict=True)])


def _filled(given: Sequence[int], length: int, start: int) -> tuple[int, ...]:
    """The last of so many numbers, the others before them."""
    return (start,) * (length - len(given)) + tuple(given)
