"""Integers in the order of the elements they stand for: -0.0 equals 0.0, NaN of any sign comes last. In Triton and in numpy."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes

BLOCK = 1 << 15  # elements of a block whose passes stay in the cache


def key_bits(dtype: np.dtype) -> int:
    """Bits of a key of this type that count."""
    return 1 if dtype == np.bool_ else 8 * dtype.itemsize


def is_signed(dtype: np.dtype) -> bool:
    """Whether keys of this type may be negative."""
    return dtypes.of(dtype).kind not in ("bool", "uint") or dtype.itemsize > 2


# key(x) < key(y) where x < y; of a float: its bits, those below the sign turned over where it is negative; ~key orders downwards
@triton.jit
def ordered(x, DESCENDING: tl.constexpr):
    """Signed keys of a tile: int64 for types of 8 bytes, int32 for all others."""
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        key = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
        key = tl.where(x == 0, 0, tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key))
    elif x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        key = tl.where(x == 0, 0, tl.where(x != x, 0x7FFFFFFF, key))
    elif x.dtype.is_floating():
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        wide = x.to(tl.float32)
        key = bits ^ ((bits >> 31) & 0x7FFF)
        key = tl.where(wide == 0, 0, tl.where(wide != wide, 0x7FFF, key))
    elif x.dtype == tl.uint64:
        key = x.to(tl.int64, bitcast=True) ^ -0x8000000000000000
    elif x.dtype == tl.uint32:
        key = (x.to(tl.int64) - 0x80000000).to(tl.int32)
    elif x.dtype == tl.int64:
        key = x
    else:
        key = x.to(tl.int32)
    return ~key if DESCENDING else key


def _float_keys(x: np.ndarray, out: np.ndarray) -> None:
    """Keys of one block of floats, of their own width, into `out`."""
    bits = out.dtype
    if x.dtype.kind == "V" or x.dtype == np.float16:  # numpy computes with these element by element
        np.copyto(out, x.view(bits))
        nan = (out & bits.type(0x7FFF)) > bits.type(0x7F80 if x.dtype.kind == "V" else 0x7C00)
        out[out == bits.type(-0x8000)] = 0
    else:
        clean = x + x.dtype.type(0)  # -0.0 + 0.0 is 0.0
        nan = clean != clean
        np.copyto(out, clean.view(bits))
    sign = out >> bits.type(8 * bits.itemsize - 1)
    sign &= bits.type(np.iinfo(bits).max)
    out ^= sign
    if nan.any():
        out[nan] = np.iinfo(bits).max


def numpy_keys(x: np.ndarray, descending: bool) -> np.ndarray:
    """Integer keys of x's width, in C order; of integers and bools these themselves (~x where descending)."""
    if dtypes.is_float(x.dtype):
        x = np.ascontiguousarray(x)
        keys = np.empty(x.shape, np.dtype(f"i{x.itemsize}"))
        flat, out = x.reshape(-1), keys.reshape(-1)
        for start in range(0, flat.size, BLOCK):
            part = out[start : start + BLOCK]
            _float_keys(flat[start : start + BLOCK], part)
            if descending:
                np.invert(part, out=part)
        return keys
    if x.dtype == np.bool_:
        x = x.view(np.uint8) if not descending else (~x).view(np.uint8)
        return np.ascontiguousarray(x)
    return np.invert(x, order="C") if descending else np.ascontiguousarray(x)
