"""Elementary functions on numpy whose own form there goes element by element, evaluated in blocks of one type that write to `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.parts.cpu.blocks import SILENT

_BITS: dict[int, Any] = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _again(ufunc: np.ufunc, wrong: np.ndarray, out: np.ndarray, *inputs: np.ndarray) -> None:
    """out = ufunc(*inputs) where `wrong`, which is rare; of one input of one element that says so, everywhere."""
    where = np.flatnonzero(np.broadcast_to(wrong, out.shape))
    if where.size:
        out[where] = ufunc(*(x[where] if x.size != 1 else x for x in inputs))


def complex_log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x) of complex numbers. Near 0 its real part is log1p(|1 + x|^2 - 1) / 2, of a (2 + a) + b^2; numpy's rounds 1 + x first."""
    a, b = x.real.astype(np.float64), x.imag.astype(np.float64)
    y = np.empty_like(x)
    with SILENT():
        beyond = a * (2.0 + a) + b * b
        far = np.log(np.hypot(1.0 + a, b))
        y.real = np.where(np.hypot(a, b) < 0.5, np.where(beyond == 0, a, 0.5 * np.log1p(beyond)), far)  # a: squares below the least number
        y.imag = np.arctan2(b, 1.0 + a)
    return y


def hypot(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """sqrt(a^2 + b^2): float32 through float64, where squares neither overflow nor vanish."""
    if out.dtype != np.float32:
        np.hypot(a, b, out=out)
        return
    y, z = a.astype(np.float64), b.astype(np.float64)
    y *= y
    z *= z
    y = np.add(y, z, out=y if y.size == out.size else None)
    np.sqrt(y, out=y)
    np.copyto(out, y, casting="same_kind")
    if out.size and np.isnan(np.maximum.reduce(out, axis=None)):  # infinity beside NaN is infinite
        _again(np.hypot, np.isnan(out), out, a, b)


def power(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a^b = 2^(b log2 |a|): float32 in float64, whose digits cover what the product's rounding costs."""
    if out.dtype != np.float32:
        np.power(a, b, out=out)
        return
    if not out.size:
        return
    y = np.abs(a).astype(np.float64)  # vector logarithms are slow of negative numbers
    np.log2(y, out=y)
    y = np.multiply(y, b.astype(np.float64), out=y if y.size == out.size else None)
    np.exp2(y, out=y)
    np.copyto(out, y, casting="same_kind")
    if not np.minimum.reduce(a, axis=None) > 0:
        _signed_power(a, b, out)
    if np.isnan(np.maximum.reduce(out, axis=None)):
        _again(np.power, np.isnan(out) & ~((a < 0) & (np.rint(b) != b)), out, a, b)


def complex_power(a: Any, b: Any, out: np.ndarray | None = None) -> np.ndarray:
    """a^b of complex numbers. Where squares overflow on the way, which numpy's whole exponents take, exp(b log a) in complex128."""
    with SILENT():
        y = np.asarray(np.power(a, b))
        lost = np.isnan(y) & np.isfinite(a) & np.isfinite(b) & np.not_equal(a, 0)
        if lost.any():
            base, exponent = np.broadcast_arrays(a, b)
            y[lost] = np.exp(exponent[lost] * np.log(base[lost].astype(np.complex128)))
    if out is None:
        return y
    out[...] = y
    return out


def _signed_power(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = a^b of |a|^b: of negative a NaN where b is not whole, negative where it is odd; numpy's own takes zeros and infinities."""
    bits = out.view(np.int32)
    negative = np.less(a, 0)
    broken = np.not_equal(np.rint(b), b)
    half = b * np.float32(0.5)
    odd = np.not_equal(np.rint(half), half) & ~broken
    if (flipped := negative & odd).any():
        bits ^= _everywhere(flipped) & np.int32(-(2**31))
    if (unknown := negative & broken).any():
        bits |= _everywhere(unknown) & np.int32(0x7FC00000)
    _again(np.power, np.equal(a, 0) | np.isinf(a), out, a, b)


def _everywhere(mask: np.ndarray) -> np.ndarray:
    """All bits of an int32 where the mask holds, else none."""
    return np.negative(mask.view(np.int8)).astype(np.int32)


def nextafter(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The neighbour of a towards b: the next size of a number is the next whole number in its bits. numpy's own takes zeros and NaN."""
    if a.size != out.size:
        a = np.full(out.shape, a)
    bits = _BITS[out.itemsize]
    lanes, found = a.view(bits), out.view(bits)
    up, down = np.greater(b, a), np.less(b, a)
    step = np.subtract(up.view(np.int8), down.view(np.int8)).astype(bits)
    np.right_shift(lanes, bits.type(8 * out.itemsize - 1), out=found)
    found |= bits.type(1)  # the sign of a
    found *= step
    found += lanes
    odd = np.equal(a, 0)
    odd |= np.isnan(a)
    odd |= np.isnan(b)
    _again(np.nextafter, odd, out, a, b)
