"""Quotients and remainders of floats on numpy, whose own go element by element: float32 through float64, where they are exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tritensor.kernels.parts.cpu.blocks import zeroed

# A quotient of two float32 that is no whole number is at least 2^-24 away from one (relative to the divisor's place), and below 2^28 float64
# rounds it by less than 2^-25: it has the right whole part n. n b has at most 52 bits, so that a - n b is exact.
_MANY = 2.0**28
_WHOLE = 2.0**22  # quotients below it float32 rounds to the right whole number by numpy's (and PyTorch's) formula as well


def _divided(a: np.ndarray, b: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and a / b in float64."""
    q = np.empty(size)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    np.divide(wide_a, wide_b, out=q)
    return wide_a, wide_b, q


def _within(q: np.ndarray, limit: float) -> bool:
    """Whether all of q is a number of a size below limit."""
    return bool(np.maximum.reduce(q, axis=None) < limit and np.minimum.reduce(q, axis=None) > -limit)


def _again(exact: Callable[..., np.ndarray], wrong: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = exact(a, b) where `wrong`."""
    where = np.flatnonzero(wrong)
    out[where] = exact(*(x[where] if x.size != 1 else x for x in (a, b)))


def _signed_zeros(a: np.ndarray, out: np.ndarray) -> None:
    """Zeros of out with the sign of a."""
    none = np.equal(out, 0)
    if none.any():
        where = np.flatnonzero(none)
        out[where] = np.copysign(out[where], a[where] if a.size != 1 else a)


def _rest(rounding: np.ufunc, exact: Callable[..., np.ndarray]) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """a - rounding(a / b) b."""

    def block(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        if out.dtype != np.float32:
            out[...] = exact(a, b)
        elif out.size:
            wide_a, wide_b, q = _divided(a, b, out.size)
            n = rounding(q)
            np.multiply(n, wide_b, out=n)
            np.subtract(wide_a, n, out=n)
            np.copyto(out, n, casting="same_kind")
            if not _within(q, _MANY) or np.isnan(np.maximum.reduce(out, axis=None)):
                np.abs(q, out=q)
                _again(exact, np.isnan(out) | ~(q < _MANY), a, b, out)
        _signed_zeros(a, out)

    return block


def _floor_divided(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    if out.dtype != np.float32:
        np.floor_divide(a, b, out=out)
    elif out.size:
        _, _, q = _divided(a, b, out.size)
        usual = _within(q, _WHOLE) and np.isfinite(b).all()
        if usual:
            np.floor(q, out=q)
            np.copyto(out, q, casting="same_kind")
        else:
            wrong = ~(np.abs(q) < _WHOLE) | np.isinf(b)
            np.copyto(out, np.floor(q), casting="same_kind")
            _again(np.floor_divide, wrong, a, b, out)


def _floored(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's remainder as fmod, which is faster, and b more where the signs differ."""
    r = np.fmod(a, b)
    drop = np.equal(np.signbit(r), np.signbit(b))
    drop |= np.equal(r, 0)
    r += zeroed(b if b.size == r.size else np.full(r.shape, b), drop)
    return r


fmod = _rest(np.trunc, np.fmod)
remainder = _rest(np.floor, _floored)
floor_divide = _floor_divided
