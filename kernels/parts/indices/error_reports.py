"""Bad indices: refusals on the CPU, and a kernel's report in the device's error record, which the next wait raises (ground/device_errors.py)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.runtime.active import runtime
from tritensor.ground import device_errors, dtypes
from tritensor.ground.errors import DTypeError, OutOfRangeError
from tritensor.ops.array import CudaArray

_INT64 = np.dtype(np.int64)


def check_integers(name: str, index: Any) -> None:
    """Refuse an index that is not of an integer type."""
    if dtypes.of(index.dtype).kind not in ("int", "uint"):
        raise DTypeError(f"{name}: index is {dtypes.of(index.dtype).name}; cast it to an integer type such as int64")


def out_of_range(name: str, dim: int, size: int, value: int, where: Any) -> str:
    """The message about a bad index on both devices."""
    return f"{name}: index {value} at position {where} is out of range for dim {dim} of size {size}"


def check_range(name: str, index: np.ndarray, size: int, dim: int, *, negative: bool) -> None:
    """Raise IndexError for the first value outside 0..size-1 (or -size..size-1), before anything is read or written."""
    if index.size == 0:
        return
    # One pass where it can be had: read as unsigned numbers, negative ones are large.
    unsigned = index.view(np.uint64) if not negative and index.dtype == np.int64 and index.flags.c_contiguous else None
    if unsigned is not None and int(np.maximum.reduce(unsigned, axis=None)) < size:
        return
    low = -size if negative else 0
    if int(np.minimum.reduce(index, axis=None)) < low or int(np.maximum.reduce(index, axis=None)) >= size:
        at = int(np.flatnonzero((index < low) | (index >= size))[0])
        raise OutOfRangeError(out_of_range(name, dim, size, int(index.reshape(-1)[at]), spot(at, index.shape)))


class Watch(NamedTuple):
    """A launch's error record and its site in it: the first two arguments of `report`, None for both where it does not."""

    errors: CudaArray
    site: np.int64


def watch(op: str, x: CudaArray, wording: device_errors.Wording, *facts: Hashable) -> Watch:
    """For a forward kernel of `op` on x's device: bad values read `wording(*facts, value, position, bound)`.

    A backward passes None instead: its forward has looked already.
    """
    storage = runtime().error_storage(x.device.index or 0)
    return Watch(CudaArray(storage, (device_errors.FIELDS,), _INT64), np.int64(device_errors.site(op, wording, *facts)))


def spot(position: int, shape: tuple[int, ...]) -> Any:
    """A flat position as people say it: a number in one dimension, else a tuple."""
    at = tuple(int(i) for i in np.unravel_index(position, shape)) if shape else ()
    return at[0] if len(at) == 1 else at


# A kernel that looks for bad elements: found = first(bad, BLOCK), and `if found < BLOCK:` fetches that one's value again, as one
# number, and calls report. So a good tile pays one reduction of int32, a branch and a few registers, and touches no memory.
@triton.jit
def first(bad, BLOCK: tl.constexpr):
    """The first lane of a tile (BLOCK,) that is bad; BLOCK where none is."""
    return tl.min(tl.where(bad, tl.arange(0, BLOCK), BLOCK), 0)


@triton.jit
def report(errors, site, value, position, bound):
    """Record one bad value (numbers, not tiles), unless something was recorded before; the site is negative until the record is whole."""
    if tl.atomic_cas(errors, site * 0, -site) == 0:
        tl.store(errors + 1, value.to(tl.int64))
        tl.store(errors + 2, position.to(tl.int64))
        tl.store(errors + 3, bound.to(tl.int64))
        tl.atomic_xchg(errors, site, sem="release", scope="sys")
