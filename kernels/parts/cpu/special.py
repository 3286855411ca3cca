"""The error function and the normal distribution on numpy, which has neither: rational approximations, evaluated in blocks."""

from __future__ import annotations

import math

import numpy as np

from tritensor.kernels.parts.cpu.blocks import blocked

# float32: rational fits in the maximum norm (iteratively reweighted least squares, checked in double precision). TAIL: the normal
# distribution's mass beyond t times exp(t^2 / 2), t in [0, 14], relative error 6e-9. ERF: (artanh(erf(x)) / x - 2 / sqrt(pi)) / x^2 in
# x^2; erf is the tanh of x times that, to 4e-9, and tanh damps the rounding errors where erf is near 1.
_TAIL = (
    (0.00407761059, 0.0403725972, 0.18246202, 0.437251259, 0.500000003),
    (0.0102209253, 0.101205903, 0.467429582, 1.19929167, 1.67238747, 1.0),
)
_ERF = ((0.00181164318, 0.0159153356, 0.102772513), (0.000324924155, 0.0236899186, 0.15689256, 1.0))
# MILLS: K(t) with mass beyond t = density(t) / (t + K(t)); K falls from 0.8 to 0, and the sum damps its rounding errors. To 2e-8.
_MILLS = tuple(
    tuple(np.array(c, np.float32) for c in part)  # arrays without dims: numpy takes them with least ado
    for part in (
        (9.10498535e-07, 0.00973576702, 0.0922671351, 0.367585832, 0.797884547),
        (0.00977786437, 0.0914446263, 0.396263152, 0.916128988, 1.0),
    )
)
# float64: W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969): numerator and
# denominator from the highest power down. SMALL: erf(x)/x in x^2 for |x| <= 0.46875. MIDDLE: K(x), up to 4, with erfc(x) exp(x^2) = 1 / (sqrt(pi) (x + K)),
# that is (D - sqrt(pi) x N) / (sqrt(pi) N) of his quotient N / D for erfc(x) exp(x^2): K falls, and the sum damps its rounding errors. LARGE: beyond, in 1/x^2.
_SMALL = (
    (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (
        -3.81629760195986695e-08, 1.92587583656793143e-06, -4.69505243851418114e-05, 5.00736827754877933e-01, 7.86410114832703222e00,
        5.81699637120429145e01, 2.56273851786606031e02, 7.27177320856387837e02, 1.25864794681140347e03, 1.23033935480374953e03,
    ),
    (
        3.81629760195986695e-08, 9.99998074124163416e-01, 1.57449730612342194e01, 1.17193214063557619e02, 5.29317000713682773e02,
        1.56321961085464727e03, 3.03452538394685371e03, 3.63544176928685920e03, 2.18071972733231814e03,
    ),
)  # fmt: skip
_LARGE = (
    (
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ),
    (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3),
)


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Horner's rule, coefficients from the highest power down, in x's own type."""
    first, second, *rest = (x.dtype.type(c) for c in coefficients)
    y = x * first
    y += second
    for c in rest:
        y *= x
        y += c
    return y


def _ratio(pair: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    y = _polynomial(pair[0], x)
    y /= _polynomial(pair[1], x)
    return y


def _decay(t: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(E, d) with exp(-scale t^2) = E (1 + d) in float64, scale 1 or 0.5: exact to a place where rounding t^2 would cost many.

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


def _mills_rest(z: np.ndarray) -> np.ndarray:
    """K in exp(z^2) erfc(z) = 1 / (sqrt(pi) (z + K)), in float64, z >= 0.46875."""
    k = _ratio(_MIDDLE, np.minimum(z, 4.0))
    far = z > 4.0
    if far.any():
        at = z[far]
        w = 1.0 / (at * at)
        w *= math.sqrt(math.pi) * _ratio(_LARGE, w)
        k[far] = at * w / (1.0 - w)
    return k


# scale: its root, the mass beyond 0, the factor 1 / sqrt(pi) or 1 / sqrt(2 pi), and what rounding takes off that, as a part of it
_FACTORS = {1.0: (1.0, 1.0, 0.5641895835477563, 1.359e-17), 0.5: (math.sqrt(0.5), 0.5, 0.3989422804014327, -6.247e-17)}


def _mass_beyond(t: np.ndarray, scale: float) -> np.ndarray:
    """float64, t >= 0: erfc(t) for scale 1, the normal distribution's mass beyond t for scale 0.5. To 4 ulp."""
    root, whole, factor, lost = _FACTORS[scale]
    z = t * root if scale != 1 else t
    y, d = _decay(t, scale)
    k = _mills_rest(z)
    k /= root
    s = t + k  # t itself, not the rounded z; what the sum loses joins d
    k += t - s
    k /= s
    d -= k
    d += lost
    y *= factor
    y /= s
    d *= y
    y += d
    near = z < 0.46875
    if near.any():
        at = z[near]
        y[near] = whole - whole * (at * _ratio(_SMALL, at * at))
    return y


def normal_tail(x: np.ndarray, few: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """For t = |x|: t and the mass of the normal distribution beyond t; in float64, to x's precision.

    float32 (or `few`: float32's digits suffice) is evaluated in float64 because there t^2 is exact and nothing else is cheaper.
    """
    t = np.abs(x, dtype=np.float64)
    if x.dtype == np.float64 and not few:
        np.minimum(t, 38.5, out=t)
        return t, _mass_beyond(t, 0.5)
    np.minimum(t, 15.0, out=t)
    falling = t * t
    falling *= -0.5
    np.exp(falling, out=falling)
    tail = _ratio(_TAIL, t)
    tail *= falling
    return t, tail


def _mills(t: np.ndarray) -> np.ndarray:
    """density(t) / (mass of the normal distribution beyond t), float32."""
    y, q = (np.multiply(t, part[0]) for part in _MILLS)
    for z, part in ((y, _MILLS[0]), (q, _MILLS[1])):
        for c in part[1:-1]:
            np.add(z, c, out=z)
            np.multiply(z, t, out=z)
        np.add(z, part[-1], out=z)
    np.divide(y, q, out=y)
    return np.add(y, t, out=y)


def _density(t: np.ndarray, times_t: bool) -> np.ndarray:
    """The normal density of float32 t, times t if so asked: through float64, where t^2 is exact, and rounded once."""
    t64 = t.astype(np.float64)
    y = t64 * t64
    np.multiply(y, -0.5, out=y)
    np.exp(y, out=y)
    np.multiply(y, 1 / math.sqrt(2 * math.pi), out=y)
    return (np.multiply(y, t64, out=y) if times_t else y).astype(np.float32)


def gelu32(x: np.ndarray, out: np.ndarray) -> None:
    """x P(X <= x) of float32, as max(x, 0) - t P(X > t), t = |x|: one formula for both signs, without cancellation. To 4 ulp."""
    t = np.abs(x)
    np.minimum(t, 15.0, out=t)
    tail = _density(t, True)
    np.divide(tail, _mills(t), out=tail)
    np.maximum(x, 0, out=out)
    np.subtract(out, tail, out=out)


def gelu32_gradient(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """g (P(X <= x) + x p(x)) of float32, with s the sign of x: g ((1 + s) / 2 + s p(t) (t - 1 / mills(t))).

    At infinity NaN, as the formula has it.
    """
    shape = x.shape
    g, x = np.atleast_1d(g), np.atleast_1d(x)  # in place works on arrays only
    t = np.abs(x)
    near = np.minimum(t, 15.0)
    p, m = _density(near, False), _mills(near)
    np.subtract(t, np.reciprocal(m, out=m), out=t)
    np.multiply(t, p, out=t)
    sign = np.copysign(np.float32(1), x)
    np.multiply(t, sign, out=t)
    np.add(sign, np.float32(1), out=sign)
    np.multiply(sign, np.float32(0.5), out=sign)
    np.add(t, sign, out=t)
    return np.multiply(t, g, out=t).reshape(shape)


def _erf_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float32:
        z = np.clip(x, -6.0, 6.0)
        u = z * z
        slope = _ratio(_ERF, u)
        slope *= u
        slope += x.dtype.type(2 / math.sqrt(math.pi))
        z *= slope
        np.tanh(z, out=out)
        return
    z = np.minimum(np.abs(x), 6.5)
    y = 1.0 - _mass_beyond(z, 1.0)
    near = z <= 0.46875
    if near.any():
        at = z[near]
        y[near] = at * _ratio(_SMALL, at * at)
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
        y = _mass_beyond(np.minimum(np.abs(x), 27.5), 1.0)
    else:
        _, y = normal_tail(np.minimum(x, 15.0) * np.float64(math.sqrt(2.0)), few=True)
        y *= 2.0
    _flipped(y, 2.0, x < 0, out)


def _normal_cdf_block(x: np.ndarray, out: np.ndarray) -> None:
    _, tail = normal_tail(x)
    _flipped(tail, 1.0, x > 0, out)


erf = blocked(_erf_block)
erfc = blocked(_erfc_block)
normal_cdf = blocked(_normal_cdf_block)
