"""float8 in kernels: its elements travel as bytes, and casts to and from it are done on bits, so that they are exact on every GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts.cpu.float_conversions import converted
from tritensor.ops.array import CudaArray

BYTE = np.dtype(np.uint8)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)


def is_float8(dtype: np.dtype) -> bool:
    """Whether a type is one of those that are only stored."""
    return dtypes.of(dtype).kind == "float8"


# y = the value of the byte v: sign, 4 bits of exponent (bias 7), 3 of fraction; no infinity, NaN where all are set
@triton.jit
def from_e4m3(v):
    size = (v & 0x7F).to(tl.uint32)
    small = (size.to(tl.float32) * 0.001953125).to(tl.uint32, bitcast=True)  # without exponent: a multiple of 2^-9
    bits = tl.where(size < 8, small, (size << 20) + 0x3C000000)  # 0x3C000000: (127 - 7) << 23
    bits = tl.where(size == 0x7F, 0x7FC00000, bits)
    return (bits | ((v & 0x80).to(tl.uint32) << 24)).to(tl.float32, bitcast=True)


# the same of sign, 5 bits of exponent (bias 15), 2 of fraction; infinities and NaN as in float16
@triton.jit
def from_e5m2(v):
    size = (v & 0x7F).to(tl.uint32)
    small = (size.to(tl.float32) * 0.0000152587890625).to(tl.uint32, bitcast=True)  # a multiple of 2^-16
    bits = tl.where(size < 4, small, (size << 21) + 0x38000000)
    bits = tl.where(size >= 0x7C, (size << 21) + 0x70000000, bits)
    return (bits | ((v & 0x80).to(tl.uint32) << 24)).to(tl.float32, bitcast=True)


# v = the byte nearest to x, ties to even; beyond the largest, 448, that one, for infinities too
@triton.jit
def to_e4m3(x):
    x = x.to(tl.float32)
    whole = x.to(tl.uint32, bitcast=True)
    bits = whole & 0x7FFFFFFF
    size = bits.to(tl.float32, bitcast=True)
    # Beside 2^14 a float32 has steps of 2^-9: the sum is rounded to one. Beyond 2^-6 the fraction loses 20 bits.
    small = (size + 16384.0).to(tl.uint32, bitcast=True) - 0x46800000
    large = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - 960
    v = tl.where(bits < 0x3C800000, small, large)
    v = tl.where(bits > 0x43E80000, 0x7E, v)
    v = tl.where(bits > 0x7F800000, 0x7F, v)
    return (v | ((whole >> 24) & 0x80)).to(tl.uint8)


# the same; from 61440 on infinite
@triton.jit
def to_e5m2(x):
    x = x.to(tl.float32)
    whole = x.to(tl.uint32, bitcast=True)
    bits = whole & 0x7FFFFFFF
    size = bits.to(tl.float32, bitcast=True)
    small = (size + 128.0).to(tl.uint32, bitcast=True) - 0x43000000
    large = ((bits + 0xFFFFF + ((bits >> 21) & 1)) >> 21) - 448
    v = tl.where(bits < 0x38800000, small, large)
    v = tl.where(bits >= 0x47700000, 0x7C, v)
    v = tl.where(bits > 0x7F800000, 0x7E, v)
    return (v | ((whole >> 24) & 0x80)).to(tl.uint8)


@triton.jit
def e4m3_to_e5m2(v):
    return to_e5m2(from_e4m3(v))


@triton.jit
def e5m2_to_e4m3(v):
    return to_e4m3(from_e5m2(v))


_FORMULAS = {(E4M3, E5M2): e4m3_to_e5m2, (E5M2, E4M3): e5m2_to_e4m3}
_FROM, _TO = {E4M3: from_e4m3, E5M2: from_e5m2}, {E4M3: to_e4m3, E5M2: to_e5m2}


def conversion(source: np.dtype, target: np.dtype) -> Any:
    """The formula of a cast between a float8 type and another, on bytes; None where both are the same."""
    if source == target:  # bytes are copied as they are
        return None
    return _FORMULAS.get((source, target)) or _FROM.get(source) or _TO[target]


def as_bytes(x: Any) -> Any:
    """A float8 array as its bytes; anything else as it is."""
    return x.view(BYTE) if isinstance(x, CudaArray) and is_float8(x.dtype) else x


def byte_of(value: Any, dtype: np.dtype) -> np.uint8:
    """A number as the byte of a float8 type."""
    with np.errstate(all="ignore"):
        return np.uint8(converted(np.array(value, np.float32), dtype).view(BYTE))


def moved_as_bytes(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward corner that only moves elements, for float8 as well: kernels see bytes. Numbers among its arguments become a byte, too."""

    @functools.wraps(forward)
    def corner(*arrays: Any, **attrs: Any) -> Any:
        kind = next((x.dtype for x in arrays if isinstance(x, CudaArray) and is_float8(x.dtype)), None)
        if kind is None:  # nearly always: nothing to unwrap
            return forward(*arrays, **attrs)
        given = [int(byte_of(x, kind)) if isinstance(x, int | float) else as_bytes(x) for x in arrays]
        out = attrs.get("out")
        if out is not None:
            forward(*given, **{**attrs, "out": as_bytes(out)})
            return out
        made = forward(*given, **attrs)
        return None if made is None else made.view(kind)

    return corner
