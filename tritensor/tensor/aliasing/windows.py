"""Views of arrays on a GPU in one step: a window with another shape and other strides, which are looked up where they take long to find.

Each function gives None where the array has no such view; the caller then goes the long way, which says why."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ops.array import CudaArray, reshape_strides

Shape = tuple[int, ...]

CACHE_ENTRIES = 4096  # entries of the dictionary
_known_strides: dict[tuple[Shape, Shape, Shape], Shape | None] = {}  # strides under another shape, by shape, strides and that shape
_new = object.__new__


def new_window(x: CudaArray, shape: Shape, strides: Shape, offset: int = 0) -> CudaArray:
    """x's memory from `offset` elements after its first one: what CudaArray(...) does, without the call."""
    made: CudaArray = _new(CudaArray)
    made.storage = x.storage
    made.shape = shape
    made.dtype = dtype = x.dtype
    made.strides = strides
    made.pointer = x.pointer + offset * dtype.itemsize if offset else x.pointer
    made.known_layout = None
    return made


def permute(x: CudaArray, dims: Shape) -> CudaArray:
    """Dimensions in another order, all of them counted from the first."""
    shape, strides = x.shape, x.strides
    return new_window(x, tuple([shape[d] for d in dims]), tuple([strides[d] for d in dims]))


def reshape_exactly(x: CudaArray, shape: Shape) -> CudaArray | None:
    """x in another shape of as many elements."""
    key = x.shape, x.strides, shape
    try:
        # try, not get: None is a value (no such view), and a hit pays for no test.
        strides = _known_strides[key]
    except KeyError:
        if len(_known_strides) >= CACHE_ENTRIES:
            _known_strides.clear()
        strides = _known_strides[key] = reshape_strides(*key)
    return None if strides is None else new_window(x, shape, strides)


def reshape(x: CudaArray, shape: tuple[Any, ...]) -> CudaArray | None:
    """x in another shape, which may hold one -1."""
    for n in shape:
        if type(n) is not int:  # a list; 2.0, which a look-up takes for 2
            return None
    size, known = math.prod(x.shape), math.prod(shape)
    # math.prod with the -1 in it: minus the product of the others, which checks the rest in one step.
    if -1 in shape:
        if known >= 0 or size % known or min(shape) < -1:  # known: minus the product of the others
            return None
        shape = tuple([-size // known if n == -1 else n for n in shape])
        if min(shape) < 0:  # there were two of them, or more
            return None
    elif known != size or (shape and min(shape) < 0):
        return None
    return reshape_exactly(x, shape)


def expand(x: CudaArray, size: tuple[Any, ...]) -> CudaArray | None:
    """x repeated along dimensions of size 1 and along new ones in front, to a size without -1."""
    lead = len(size) - len(x.shape)
    if lead < 0:
        return None
    strides = [0] * lead
    for have, step, want in zip(x.shape, x.strides, size[lead:], strict=True):
        if have == want:
            strides.append(step)
        elif have == 1:
            strides.append(0)
        else:
            return None
    for n in size:
        if type(n) is not int or n < 0:
            return None
    return new_window(x, size, tuple(strides))


def index(x: CudaArray, index: tuple[Any, ...]) -> CudaArray:
    """x at ints within range and slices with positive steps, of its first dimensions."""
    shape, strides, offset = [], [], 0
    for n, step, i in zip(x.shape, x.strides, index, strict=False):
        if type(i) is int:
            offset += (i if i >= 0 else i + n) * step
        elif i.start is None and i.stop is None and i.step is None:
            shape.append(n)
            strides.append(step)
        else:
            start, stop, by = i.indices(n)
            shape.append(count := len(range(start, stop, by)))
            strides.append(step * by)
            offset += start * step if count else 0
    left = len(index)
    return new_window(x, (*shape, *x.shape[left:]), (*strides, *x.strides[left:]), offset)
