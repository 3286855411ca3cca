"""Conversions of floats on the CPU: to and from float16, bfloat16 and float8 by machine code or integer arithmetic in blocks, where numpy goes number by
number; to integers, the same for numbers that do not fit on every processor."""

from __future__ import annotations

import functools
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tritensor.ground import dtypes
from tritensor.llvm.loops import MANY, Loop

BLOCK = 16384  # elements, in the cache


class _Form(NamedTuple):
    """The bits of a small type as they come of a float32's: `shift` bits of the fraction go, `bias` is taken off the rest; numbers below `small`
    have no exponent of their own and are counted by adding `unit`, beside which float32 has their steps; from `large` on stands `top`."""

    shift: int
    bias: int
    small: int
    unit: float
    large: int
    top: int
    nan: int
    bits: type[np.unsignedinteger]


_FORMS = {
    np.dtype(np.float16): _Form(13, 112 << 10, 0x38800000, 0.5, 0x477FF000, 0x7C00, 0x7E00, np.uint16),
    np.dtype(ml_dtypes.float8_e5m2): _Form(21, 112 << 2, 0x38800000, 128.0, 0x47700000, 0x7C, 0x7E, np.uint8),
    np.dtype(ml_dtypes.float8_e4m3fn): _Form(20, 120 << 3, 0x3C800000, 16384.0, 0x43E80001, 0x7E, 0x7F, np.uint8),
}


_FLOAT32, _INT64 = np.dtype(np.float32), np.dtype(np.int64)
HALVES = frozenset((np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)))
FLOATING = frozenset((*HALVES, _FLOAT32, np.dtype(np.float64)))
_same = Loop(lambda x: x)


def is_half(dtype: np.dtype) -> bool:
    """Whether a type is a half-precision float (float16, bfloat16), which numpy would round after every operation."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A floating array as another floating type, each number rounded to the nearest, ties to even; a copy, which lies as x does."""
    if x.size >= MANY:
        # numpy's conversions of these types go number by number
        if (x.dtype in HALVES or dtype in HALVES) and x.dtype in FLOATING and dtype in FLOATING:
            out = np.empty(x.shape, dtype, "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C")
            if _same((x,), out):
                return out
        if dtype in _FORMS and x.dtype == np.float32 and x.flags.c_contiguous:
            return _narrowed(x, dtype)
    return dtypes.astype(x, dtype)


def as_integers(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A floating array cut to whole numbers. What does not fit, NaN too, becomes what `maths.stored` says in kernels: of int32 and int64 the least, of
    narrower types the low bits of int32, of uint32 those of int64."""
    with np.errstate(all="ignore"):
        if dtype == np.uint32:  # numpy has two answers, by how an array lies
            return as_integers(x, _INT64).astype(dtype)
        return x.astype(dtype) if _as_x86() else _by_bounds(x, dtype)


@functools.cache
def _as_x86() -> bool:
    """Whether this processor's own conversions say that."""
    with np.errstate(all="ignore"):
        found = np.repeat([np.nan, 3e9, -3e9, 1e19], 4)[::2].astype(np.int32), np.array([np.nan, 1e19, -1e19]).astype(np.int64)
        above = np.array([1e20, np.nan]).astype(np.uint64)
    return bool((found[0] == -(2**31)).all() and (found[1] == -(2**63)).all() and above.tolist() == [0, 2**63])


def _by_bounds(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """as_integers where the processor's conversions go to the nearest end."""
    x = x.astype(np.float64, copy=False)
    if dtype == np.uint64:
        above = x >= 2.0**63
        low = as_integers(np.where(above, x - 2.0**63, x), _INT64)
        return np.where(above, low ^ np.int64(-(2**63)), low).astype(dtype)
    kind = _INT64 if dtype.itemsize == 8 else np.dtype(np.int32)
    least, most = float(np.iinfo(kind).min), -float(np.iinfo(kind).min)
    return np.where((x >= least) & (x < most), x, least).astype(kind).astype(dtype)


def as_float32(x: np.ndarray) -> np.ndarray:
    """A floating array as float32."""
    return converted(x, _FLOAT32)


def _narrowed(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A C-ordered float32 array as float16 or float8 by integer arithmetic."""
    form = _FORMS[dtype]
    y = np.empty(x.shape, form.bits)
    source, target = x.reshape(-1), y.reshape(-1)
    for start in range(0, x.size, BLOCK):
        _block(source[start : start + BLOCK], target[start : start + BLOCK], form)
    return y.view(dtype)


def _block(x: np.ndarray, out: np.ndarray, form: _Form) -> None:
    whole = x.view(np.uint32)
    bits = whole & np.uint32(0x7FFFFFFF)
    y = bits >> np.uint32(form.shift)
    y &= np.uint32(1)  # a tie goes to the even neighbour
    y += np.uint32((1 << (form.shift - 1)) - 1)
    y += bits
    y >>= np.uint32(form.shift)
    y -= np.uint32(form.bias)  # wraps around for small numbers, which are counted below
    small = (bits < np.uint32(form.small)).nonzero()[0]
    if small.size:
        counted = np.abs(x[small]) + np.float32(form.unit)
        y[small] = counted.view(np.uint32) - np.float32(form.unit).view(np.uint32)
    if bits.max() >= form.large:
        y[bits >= np.uint32(form.large)] = form.top
        y[bits > np.uint32(0x7F800000)] = form.nan
    sign = whole >> np.uint32(32 - 8 * out.itemsize)
    sign &= np.uint32(1 << (8 * out.itemsize - 1))
    y |= sign
    out[...] = y
