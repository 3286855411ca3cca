"""Arithmetic that numpy does otherwise than a GPU: fma, the high half of a product, division towards zero, floats cut to integers,
floats of tensor cores."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from triton.runtime import interpreter as upstream


def quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integer division towards zero."""
    return (x - np.fmod(x, y)) // y


def to_integer(x: np.ndarray, to: np.dtype, source: np.dtype | None = None) -> np.ndarray:
    """Floats cut to integers as the GPU does (cvt.rzi): out of range the nearest integer there is. NaN gives 0, of or to 64 bits the sign's bit alone.
    There are no conversions to 8 bits: those to 16 lose their upper half. `source` is the type that was converted, where x is of a wider one."""
    if to == np.bool_:
        return x.astype(np.bool_)
    source = x.dtype if source is None else source
    if to.itemsize == 1:
        return to_integer(x, np.dtype(f"{to.kind}2"), source).astype(to)
    info = np.iinfo(to)
    nothing = 0 if source.itemsize < 8 and to.itemsize < 8 else 1 << info.bits - 1 if info.min == 0 else info.min
    cut = np.trunc(x.astype(np.float64))
    whole = np.nan_to_num(cut, nan=0.0)
    inside = (whole > float(info.min) - 1) & (whole < float(info.max) + 1)
    out = np.where(inside, np.where(inside, whole, 0).astype(to), np.where(whole < 0, info.min, info.max).astype(to))
    return np.where(np.isnan(cut), np.array(nothing, to), out)


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z rounded once."""
    x, y, z = np.broadcast_arrays(x, y, z)
    if z.dtype not in (np.float32, np.float64):
        return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(z.dtype)
    name = "fma_fp32" if z.dtype == np.float32 else "fma_fp64"
    native = getattr(upstream._interpreter, name, None)
    if native is not None:
        return native(*(np.ascontiguousarray(v) for v in (x, y, z)))
    return _libm_fma(z.dtype)(x, y, z)


def _libm_fma(dtype: np.dtype) -> Callable[..., np.ndarray]:
    """The C library's fma, for Triton 3.6, whose interpreter has none."""
    c, name = (ctypes.c_float, "fmaf") if dtype == np.float32 else (ctypes.c_double, "fma")
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.argtypes, function.restype = (c, c, c), c
    return np.vectorize(function, otypes=[dtype])


def umulhi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """High half of the unsigned product; signed inputs take part by their bits."""
    a, b = np.broadcast_arrays(a, b)
    dtype, bits = a.dtype, a.dtype.itemsize * 8
    ua, ub = (np.ascontiguousarray(v).view(f"u{dtype.itemsize}").astype(np.uint64) for v in (a, b))
    if bits < 64:
        high = (ua * ub) >> np.uint64(bits)
        return high.astype(f"u{dtype.itemsize}").view(dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = ua >> half, ua & low, ub >> half, ub & low
    middle = a1 * b0 + (a0 * b0 >> half)
    other = (middle & low) + a0 * b1
    return (a1 * b1 + (middle >> half) + (other >> half)).view(dtype)


def rounded_to_tf32(x: np.ndarray) -> np.ndarray:
    """float32 with 10 bits behind the point, to nearest and ties away from zero, as cvt.rna.tf32 has it."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


_FOUR_BITS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)  # e2m1, without its sign


def scaled(x: np.ndarray, scale: np.ndarray | None, packed: bool, axis: int) -> np.ndarray:
    """An operand of tl.dot_scaled as float32, (rows, k): groups along k times their scale, a float8, or a byte that means 2^(scale - 127), of which 255 is NaN.

    `packed`: two four-bit floats in a byte, side by side along `axis`, the low half first.
    """
    if packed:
        x = np.moveaxis(x, axis, -1)
        codes = np.stack([x & 15, x >> 4], axis=-1).reshape(*x.shape[:-1], -1)
        x = np.moveaxis(np.where(codes & 8, -_FOUR_BITS[codes & 7], _FOUR_BITS[codes & 7]), -1, axis)
    x = x.astype(np.float32)
    if scale is None:
        return x
    if scale.dtype.kind in "iu":
        exponents = scale.view(np.uint8).astype(np.int32)
        factors = np.where(exponents == 255, np.float32(np.nan), np.ldexp(np.float32(1), exponents - 127))
    else:
        factors = scale.astype(np.float32)
    return x * np.repeat(factors, x.shape[-1] // scale.shape[-1], axis=-1)
