"""Mathematics on lanes, float32 and float64: argument reduction, then the power series of the function, with a fused multiply-add at every step.

Within 2 ulp where no other bound stands. The series are the functions' own (DLMF chapter 4), so long that their rest is below a quarter of an ulp.
"""

from __future__ import annotations

import math
from typing import Any

from tritensor.llvm.simd import Lane, choice, fused, give_up

_INF, _NAN = math.inf, math.nan
# log 2 and pi / 2 as sums of numbers of the kind, the first parts so short that products with the multiples that occur are exact
_LOG2 = {"f32": (0.693145751953125, 1.42860682030941723e-6), "f64": (0.6931471803691238, 1.9082149292705877e-10)}
_QUARTER = {
    "f32": (1.57079637050628662, -4.37113900018624283e-8, -1.71512449e-15),
    "f64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_TURNS = {"f32": 2.0**16, "f64": 2.0**21}  # arguments up to which three parts of pi / 2 will do
_INTEGER = {"f32": "i32", "f64": "i64"}
_FRACTION = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}


def _series(x: Lane, coefficients: list[float]) -> Lane:
    """c0 + c1 x + ... by Horner's rule."""
    *rest, top = coefficients
    y = x.code.constant(top, x.kind)
    for c in reversed(rest):
        y = fused(y, x, c)
    return y


def absolute(x: Lane) -> Lane:
    return x.code.call("fabs", x) if x.kind[0] == "f" else choice(x < 0, 0 - x, x)


def sqrt(x: Lane) -> Lane:
    return x.code.call("sqrt", x)


def floor(x: Lane) -> Lane:
    return x.code.call("floor", x)


def ceil(x: Lane) -> Lane:
    return x.code.call("ceil", x)


def trunc(x: Lane) -> Lane:
    return x.code.call("trunc", x)


def rint(x: Lane) -> Lane:
    return x.code.call("rint", x)


def copysign(x: Lane, sign: Lane) -> Lane:
    return x.code.call("copysign", x, sign)


def maximum(a: Lane, b: Any) -> Lane:
    """The larger; NaN if either is."""
    if not isinstance(a, Lane):
        a, b = b, a
    return choice((a > b) | (a != a), a, b)


def minimum(a: Lane, b: Any) -> Lane:
    """The smaller; NaN if either is."""
    if not isinstance(a, Lane):
        a, b = b, a
    return choice((a < b) | (a != a), a, b)


def _within(x: Lane, low: float, high: float) -> Lane:
    """x cut to [low, high]; NaN stays."""
    return choice(x < low, low, choice(x > high, high, x))


def _power_of_two(k: Lane, kind: str) -> Lane:
    """2^k of integers in the range of exponents."""
    return ((k + _BIAS[kind]) << _FRACTION[kind]).bits(kind)


def _scaled(y: Lane, k: Lane) -> Lane:
    """y 2^k, by two factors: results without an exponent of their own are rounded once."""
    half = k >> 1
    return y * _power_of_two(half, y.kind) * _power_of_two(k - half, y.kind)


_TERMS = {"f32": 8, "f64": 14}  # of exp on half of log 2 either way
_EXP_ENDS = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}


def _rise(r: Lane) -> Lane:
    """exp(r) - 1 for |r| up to log(2) / 2."""
    q = _series(r, [1 / math.factorial(n) for n in range(2, _TERMS[r.kind])])
    return fused(r * r, q, r)


def _multiple(x: Lane) -> tuple[Lane, Lane]:
    """(k, r): x = k log 2 + r, k a whole number."""
    high, low = _LOG2[x.kind]
    k = rint(x * (1 / math.log(2)))
    return k, fused(k, -low, fused(k, -high, x))


def exp(x: Lane) -> Lane:
    low, high = _EXP_ENDS[x.kind]
    gone = x < low
    x = choice(
        gone, 0.0, choice(x > high, high, x)
    )  # NaN stays; masks are full of -inf, and arithmetic on what has no exponent of its own is slow
    k, r = _multiple(x)
    return choice(gone, 0.0, _scaled(_rise(r) + 1.0, k.to(_INTEGER[x.kind])))


def exp2(x: Lane) -> Lane:
    low, high = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[x.kind]
    x = _within(x, low, high)
    k = rint(x)
    return _scaled(_rise((x - k) * math.log(2)) + 1.0, k.to(_INTEGER[x.kind]))


def expm1(x: Lane) -> Lane:
    low, high = {"f32": (-20.0, 89.0), "f64": (-40.0, 710.0)}[x.kind]
    x = _within(x, low, high)
    k, r = _multiple(x)
    scale = _power_of_two(k.to(_INTEGER[x.kind]) - 1, x.kind)  # half of it, which stays finite
    y = fused(scale, _rise(r), scale - 0.5)
    return choice(x == 0.0, x, choice(k == 0.0, _rise(r), y + y))  # the sign of -0 stays


_ODD = {"f32": 5, "f64": 11}  # terms of the series of atanh
_ROOT_HALF = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
_SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1022}


def _log(x: Lane, beside: Lane | None = None) -> Lane:
    """log(x) + beside of finite x > 0: of x = 2^k (1 + f), k log 2 + 2 atanh(s) with s = f / (2 + f)."""
    kind, whole, places = x.kind, _INTEGER[x.kind], _FRACTION[x.kind]
    tiny = x < _SMALLEST[kind]
    lift = places + 2
    x = choice(tiny, x * 2.0**lift, x)
    bits = x.bits(whole) - _ROOT_HALF[kind]
    k = ((bits >> places) - choice(tiny, x.code.constant(lift, whole), 0)).to(kind)
    f = ((bits & ((1 << places) - 1)) + _ROOT_HALF[kind]).bits(kind) - 1.0
    s = f / (f + 2.0)
    z = s * s
    rest = z * _series(z, [2 / (2 * n + 1) for n in range(1, _ODD[kind])])
    half = 0.5 * f * f
    high, low = _LOG2[kind]
    tail = fused(s, half + rest, k * low)
    if beside is not None:
        tail = tail + beside
    return fused(k, high, f - (half - tail))


def _logarithm(x: Lane, y: Lane) -> Lane:
    """y with what a logarithm is of 0, of infinity, below 0 and of NaN."""
    y = choice(x == 0.0, -_INF, y)
    return choice(x == _INF, _INF, choice((x < 0.0) | (x != x), _NAN, y))


def log(x: Lane) -> Lane:
    return _logarithm(x, _log(x))


def log2(x: Lane) -> Lane:
    return _logarithm(x, _log(x) * (1 / math.log(2)))


def log10(x: Lane) -> Lane:
    return _logarithm(x, _log(x) * (1 / math.log(10)))


def log1p(x: Lane) -> Lane:
    """log(u) + (x - (u - 1)) / u with u = 1 + x rounded."""
    u = x + 1.0
    y = _log(u, (x - (u - 1.0)) / u)
    return choice(absolute(x) < 2.0 ** -(_FRACTION[x.kind] + 2), x, _logarithm(u, y))  # the sign of -0 stays


def _turned(x: Lane) -> tuple[Lane, Lane]:
    """(k, r): x = k pi / 2 + r, |r| up to pi / 4; numpy takes what is too far out."""
    give_up(~(absolute(x) < _TURNS[x.kind]))
    first, second, third = _QUARTER[x.kind]
    k = rint(x * (2 / math.pi))
    r = fused(k, -third, fused(k, -second, fused(k, -first, x)))
    return k.to(_INTEGER[x.kind]), r


_WAVES = {"f32": 5, "f64": 9}  # terms of sine and cosine on an eighth of a turn


def _sine(r: Lane) -> Lane:
    z = r * r
    return fused(r * z, _series(z, [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, _WAVES[r.kind])]), r)


def _cosine(r: Lane) -> Lane:
    z = r * r
    half = 0.5 * z
    w = 1.0 - half
    q = _series(z, [(-1) ** n / math.factorial(2 * n) for n in range(2, _WAVES[r.kind] + 1)])
    return w + fused(z * z, q, (1.0 - w) - half)


def _wave(k: Lane, r: Lane) -> Lane:
    """The sine k quarters of a turn further on."""
    y = choice((k & 1) == 0, _sine(r), _cosine(r))
    flip = (k & 2) << {"f32": 30, "f64": 62}[r.kind]
    return (y.bits(_INTEGER[r.kind]) ^ flip).bits(r.kind)


def sin(x: Lane) -> Lane:
    k, r = _turned(x)
    return _wave(k, r)


def cos(x: Lane) -> Lane:
    k, r = _turned(x)
    return _wave(k + 1, r)


def tan(x: Lane) -> Lane:
    k, r = _turned(x)
    return _wave(k, r) / _wave(k + 1, r)


def tanh(x: Lane) -> Lane:
    """-t / (2 + t) with t = expm1(-2 |x|), the sign of x."""
    t = expm1(-2.0 * absolute(x))
    return copysign(-t / (t + 2.0), x)


def sinh(x: Lane) -> Lane:
    """(t + t / (t + 1)) / 2 with t = expm1(|x|), by halves where that overflows."""
    a = absolute(x)
    t = expm1(a)
    h = exp(0.5 * a)
    return copysign(choice(a < 80.0, 0.5 * (t + t / (t + 1.0)), (0.5 * h) * h), x)


def cosh(x: Lane) -> Lane:
    h = exp(0.5 * absolute(x))
    return (0.5 * h) * h + 0.5 / h / h
