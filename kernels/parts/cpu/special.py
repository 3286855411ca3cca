"""Error function and normal distribution on numpy, which has neither: rational approximations, evaluated in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.parts.cpu.blocks import blocked

# float32: rational fits in the maximum norm (iteratively reweighted least squares, checked in double precision). ERF:
# (artanh(erf(x)) / x - 2 / sqrt(pi)) / x^2 in x^2; erf is the tanh of x times that, to 4e-9, and tanh damps the rounding errors where erf is near 1.
ERF = tuple(
    tuple(np.array(c, np.float32) for c in part)
    for part in ((0.00181164318, 0.0159153356, 0.102772513), (0.000324924155, 0.0236899186, 0.15689256, 1.0))
)
# MILLS: K(t) with mass beyond t = density(t) / (t + K(t)); K falls from 0.8 to 0, and the sum damps its rounding errors. To 2e-8.
_MILLS = tuple(
    tuple(np.array(c, np.float32) for c in part)  # arrays without dims: numpy takes them with least ado
    for part in (
        (9.10498535e-07, 0.00973576702, 0.0922671351, 0.367585832, 0.797884547),
        (0.00977786437, 0.0914446263, 0.396263152, 0.916128988, 1.0),
    )
)
# float64, SMALL: W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969): numerator and
# denominator from the highest power down, erf(x)/x in x^2 for |x| <= 0.46875.
SMALL = (
    (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
# K of the float64 normal distribution, from 0 to 38.5, by interpolation at Chebyshev nodes of sqrt(t / 20) in 60 digits: t + K is exact to 2e-17
_REST = (
    (
        1.14115046313688493e-7, 3.77195204977978332e-6, 6.18481387473695842e-5, 6.54023240845663636e-4, 4.90628889950945205e-3, 2.71999746101028502e-2,
        1.12855350660198206e-1, 3.47074728770487812e-1, 7.62333030016429436e-1, 1.09349676690019555, 0.797884560802865356,
    ),
    (
        1.14115046313323295e-7, 3.77195204985293997e-6, 6.20763688331130965e-5, 6.61567145350401758e-4, 5.02930046996457276e-3, 2.84853898987103495e-2,
        1.22301619930944009e-1, 3.97709202298281937e-1, 9.61152575571464366e-1, 1.65040302856577609, 1.82592453357744216, 1.0,
    ),
)  # fmt: skip


def _polynomial(coefficients: tuple[Any, ...], x: np.ndarray) -> np.ndarray:
    """Horner's rule, coefficients from the highest power down, in x's own type."""
    first, second, *rest = (c if isinstance(c, np.ndarray) else np.array(c, x.dtype) for c in coefficients)
    y = np.multiply(x, first)
    np.add(y, second, out=y)
    for c in rest:
        np.multiply(y, x, out=y)
        np.add(y, c, out=y)
    return y


def _ratio(pair: tuple[tuple[Any, ...], ...], x: np.ndarray) -> np.ndarray:
    y = _polynomial(pair[0], x)
    y /= _polynomial(pair[1], x)
    return y


def _decay(t: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(E, d) with exp(-scale t^2) = E (1 + d) in float64, scale 1 or 0.5: exact to the last digit but one, where rounding t^2 would cost many.

    t^2 = h^2 + r, r = (t - h)(t + h), with h of so few bits that h^2 is exact; r is below 1e-4, so that e^-r - 1 takes three terms.
    """
    h = np.bitwise_and(t.view(np.int64), np.int64(-(1 << 27))).view(np.float64)
    r = t - h
    r *= t + h
    r *= -scale
    d = r * (1 / 6)
    d += 0.5
    d *= r
    d += 1.0
    d *= r
    h *= h
    h *= -scale
    return np.exp(h, out=h), d


_LOST = 2.6081e-16  # what rounding takes off sqrt(2 pi); sqrt(pi) loses a third of that


def _damped(pair: tuple[tuple[Any, ...], ...], scale: float, dtype: type) -> tuple[Any, ...]:
    """(one, c, m, q) with mass beyond t = exp(-scale t^2) / (one + t (c - m(t) / q(t))): exact at 0, and m / q, which falls, weighs little beyond.

    For the normal distribution, scale 0.5, c = sqrt(2 pi), one = 2 and, of K = p / q, m = c (K(0) q - p) / t. For erfc t is sqrt(2) times as large,
    and all is halved.
    """
    p, q = ([float(c) for c in part] for part in pair)
    p = [0.0] * (len(q) - len(p)) + p
    root, c = (math.sqrt(2.0), math.sqrt(math.pi)) if scale == 1 else (1.0, math.sqrt(2 * math.pi))
    m = [c * (p[-1] * b - a) for a, b in zip(p, q, strict=True)][:-1]
    if scale == 0.5 and dtype is np.float64:
        m = [a - _LOST * b for a, b in zip([0.0, *m], q, strict=True)]
    m, q = ([value * root ** (len(part) - 1 - i) for i, value in enumerate(part)] for part in (m, q))
    return np.array(1.0 / scale, dtype), np.array(c, dtype), tuple(np.array(v, dtype) for v in m), tuple(np.array(v, dtype) for v in q)


DAMPED = {
    (scale, np.dtype(dtype).name): _damped(pair, scale, dtype)
    for scale in (1.0, 0.5)
    for pair, dtype in ((_REST, np.float64), (_MILLS, np.float32))
}


def _rise(t: np.ndarray, scale: float) -> np.ndarray:
    """exp(-scale t^2) over the mass beyond t, t >= 0."""
    one, c, m, q = DAMPED[scale, t.dtype.name]
    y = _ratio((m, q), t)
    np.subtract(c, y, out=y)
    np.multiply(y, t, out=y)
    return np.add(y, one, out=y)


def _mass_beyond(t: np.ndarray, scale: float) -> np.ndarray:
    """float64, t >= 0: erfc(t) for scale 1, the normal distribution's mass beyond t for scale 0.5. To 4 ulp."""
    y, d = _decay(t, scale)
    y /= _rise(t, scale)
    d *= y
    y += d
    return y


def _mass_beyond32(t: np.ndarray, scale: float, out: np.ndarray) -> None:
    """`_mass_beyond` of float32, its square through float64, where it is exact."""
    wide = t.astype(np.float64)
    np.multiply(wide, wide, out=wide)
    np.multiply(wide, -scale, out=wide)
    np.exp(wide, out=wide)
    np.copyto(out, wide, casting="same_kind")
    np.divide(out, _rise(t, scale), out=out)


def _reflected(y: np.ndarray, x: np.ndarray, whole: float, below: bool) -> None:
    """y = whole - y where x is negative (or, not `below`, where it is not), float32; on bits, which is faster than a where."""
    lanes = x.view(np.int32) if below else np.bitwise_not(x.view(np.int32))
    bits = y.view(np.int32)
    bits ^= np.bitwise_and(lanes, np.int32(-(2**31)))
    added = np.right_shift(lanes, np.int32(31))
    added &= np.float32(whole).view(np.int32)
    np.add(y, added.view(np.float32), out=y)


def gelu_block(x: np.ndarray, out: np.ndarray) -> None:
    """x P(X <= x) as max(x, 0) - t P(X > t), t = |x|: one formula for both signs, without cancellation. To 4 ulp."""
    t = np.abs(x)
    if x.dtype == np.float32:
        np.minimum(t, np.float32(15.0), out=t)
        _mass_beyond32(t, 0.5, out)
        np.multiply(t, out, out=t)
    else:
        np.minimum(t, 38.5, out=t)
        np.multiply(t, _mass_beyond(t, 0.5), out=t)
    np.maximum(x, 0, out=out)
    np.subtract(out, t, out=out)


_END, _ONE = 0.46875, 5.93  # where near 0 ends; from where on erf is 1 in float64


def _erf_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float32:
        np.clip(x, np.float32(-6.0), np.float32(6.0), out=out)
        u = np.multiply(out, out)
        slope = _ratio(ERF, u)
        np.multiply(slope, u, out=slope)
        np.add(slope, np.float32(2 / math.sqrt(math.pi)), out=slope)
        np.multiply(out, slope, out=out)
        np.tanh(out, out=out)
        return
    # near 0 as z R(z^2); beyond its end that stays, and 1 - erfc adds what it rises above its own value there: no masks
    z = np.abs(x)
    y = _mass_beyond(np.clip(z, _END, 6.5), 1.0)
    np.subtract(_mass_beyond(np.full(1, _END), 1.0), y, out=y)  # (1 - y) - (1 - erfc(end))
    whole = None if not z.size or np.maximum.reduce(z, axis=None) < _ONE else z >= _ONE
    np.minimum(z, _END, out=z)
    near = _ratio(SMALL, z * z)
    near *= z
    y += near
    if whole is not None:
        y[whole] = 1.0
    np.copysign(y, x, out=out)


def _flipped(y: np.ndarray, whole: float, flip: np.ndarray, out: np.ndarray) -> None:
    """out = whole - y where `flip`, else y; by arithmetic, which is faster than a where."""
    sign = flip.astype(np.float64)
    sign *= -2.0
    sign += 1.0
    y *= sign
    sign -= 1.0
    sign *= -0.5 * whole
    np.add(y, sign, out=out, casting="same_kind")


def _erfc_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float64:
        _flipped(_mass_beyond(np.minimum(np.abs(x), 27.5), 1.0), 2.0, x < 0, out)
        return
    t = np.abs(x)
    np.minimum(t, np.float32(11.0), out=t)
    _mass_beyond32(t, 1.0, out)
    _reflected(out, x, 2.0, True)


def _normal_cdf_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float64:
        _flipped(_mass_beyond(np.minimum(np.abs(x), 38.5), 0.5), 1.0, x > 0, out)
        return
    t = np.abs(x)
    np.minimum(t, np.float32(15.0), out=t)
    _mass_beyond32(t, 0.5, out)
    _reflected(out, x, 1.0, False)


# erfinv(x) / x in w - 2.5, w = -log(1 - x^2) from 0 to 4.5, by interpolation at Chebyshev nodes in 40 digits: to 6e-8
_ERFINV = tuple(np.array(c, np.float32) for c in (
    4.28982575e-08, 3.85692646e-07, -3.62446862e-06, -4.7074693e-06, 2.18758689e-04, -1.25306261e-03, -4.17772296e-03, 0.246640404, 1.5014094,
))  # fmt: skip


def erfinv32(x: np.ndarray, out: np.ndarray, far: Callable[[np.ndarray], np.ndarray]) -> None:
    """erfinv of float32 after Giles (GPU Computing Gems, 2011), a polynomial in log((1 - x) (1 + x)); `far` takes what is next to 1 or beyond."""
    w = np.subtract(np.float32(1), x)
    np.add(x, np.float32(1), out=out)
    np.multiply(w, out, out=w)
    np.log(w, out=w)
    np.subtract(np.float32(-2.5), w, out=w)
    np.multiply(_polynomial(_ERFINV, w), x, out=out)
    if x.size and not np.maximum.reduce(w, axis=None) < 2.0:
        beyond = np.logical_not(np.less(w, 2.0))
        out[beyond] = far(x[beyond])


erf = blocked(_erf_block)
erfc = blocked(_erfc_block)
normal_cdf = blocked(_normal_cdf_block)
