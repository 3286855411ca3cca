"""Mathematics on SIMD vectors, float32 and float64: argument reduction, then the power series of the function, with a fused multiply-add at every step.

Within 2 ulp where no other bound stands. The series are the functions' own (DLMF chapter 4), so long that their rest is below a quarter of an ulp.
"""

from __future__ import annotations

import math
from typing import Any

from tritensor.llvm.simd import Vector, fma, give_up, select

_INF, _NAN = math.inf, math.nan
# log 2 and pi / 2 as sums of numbers of the kind, the first parts so short that products with the multiples that occur are exact
_LOG2 = {"f32": (0.693145751953125, 1.42860682030941723e-6), "f64": (0.6931471803691238, 1.9082149292705877e-10)}
_HALF_PI = {
    "f32": (1.57079637050628662, -4.37113900018624283e-8, -1.71512449e-15),
    "f64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_MAX_ARGUMENT = {"f32": 2.0**16, "f64": 2.0**21}  # arguments up to which three parts of pi / 2 will do
_INTEGER = {"f32": "i32", "f64": "i64"}
_FRACTION = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}


def _polynomial(x: Vector, coefficients: list[float]) -> Vector:
    """c0 + c1 x + ... by Horner's rule."""
    *rest, top = coefficients
    y = x.code.constant(top, x.kind)
    for c in reversed(rest):
        y = fma(y, x, c)
    return y


def absolute(x: Vector) -> Vector:
    return x.code.call("fabs", x) if x.kind[0] == "f" else select(x < 0, 0 - x, x)


def sqrt(x: Vector) -> Vector:
    return x.code.call("sqrt", x)


def floor(x: Vector) -> Vector:
    return x.code.call("floor", x)


def ceil(x: Vector) -> Vector:
    return x.code.call("ceil", x)


def trunc(x: Vector) -> Vector:
    return x.code.call("trunc", x)


def rint(x: Vector) -> Vector:
    return x.code.call("rint", x)


def copysign(x: Vector, sign: Vector) -> Vector:
    return x.code.call("copysign", x, sign)


def maximum(a: Vector, b: Any) -> Vector:
    """The larger; NaN if either is."""
    if not isinstance(a, Vector):
        a, b = b, a
    return select((a > b) | (a != a), a, b)


def minimum(a: Vector, b: Any) -> Vector:
    """The smaller; NaN if either is."""
    if not isinstance(a, Vector):
        a, b = b, a
    return select((a < b) | (a != a), a, b)


def _clamp(x: Vector, low: float, high: float) -> Vector:
    """x cut to [low, high]; NaN stays."""
    return select(x < low, low, select(x > high, high, x))


def _power_of_two(k: Vector, kind: str) -> Vector:
    """2^k of integers in the range of exponents."""
    return ((k + _BIAS[kind]) << _FRACTION[kind]).bits(kind)


def _times_power_of_two(y: Vector, k: Vector) -> Vector:
    """y 2^k, by two factors: results without an exponent of their own are rounded once."""
    half = k >> 1
    return y * _power_of_two(half, y.kind) * _power_of_two(k - half, y.kind)


_EXP_TERMS = {"f32": 8, "f64": 14}  # of exp on half of log 2 either way
_EXP_ENDS = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}


def _reduced_expm1(r: Vector) -> Vector:
    """exp(r) - 1 for |r| up to log(2) / 2."""
    q = _polynomial(r, [1 / math.factorial(n) for n in range(2, _EXP_TERMS[r.kind])])
    return fma(r * r, q, r)


def _reduce_by_log2(x: Vector) -> tuple[Vector, Vector]:
    """(k, r): x = k log 2 + r, k a whole number."""
    high, low = _LOG2[x.kind]
    k = rint(x * (1 / math.log(2)))
    return k, fma(k, -low, fma(k, -high, x))


def exp(x: Vector) -> Vector:
    low, high = _EXP_ENDS[x.kind]
    gone = x < low
    x = select(
        gone, 0.0, select(x > high, high, x)
    )  # NaN stays; masks are full of -inf, and arithmetic on what has no exponent of its own is slow
    k, r = _reduce_by_log2(x)
    return select(gone, 0.0, _times_power_of_two(_reduced_expm1(r) + 1.0, k.to(_INTEGER[x.kind])))


def exp2(x: Vector) -> Vector:
    low, high = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[x.kind]
    x = _clamp(x, low, high)
    k = rint(x)
    return _times_power_of_two(_reduced_expm1((x - k) * math.log(2)) + 1.0, k.to(_INTEGER[x.kind]))


def expm1(x: Vector) -> Vector:
    low, high = {"f32": (-20.0, 89.0), "f64": (-40.0, 710.0)}[x.kind]
    x = _clamp(x, low, high)
    k, r = _reduce_by_log2(x)
    scale = _power_of_two(k.to(_INTEGER[x.kind]) - 1, x.kind)  # half of it, which stays finite
    y = fma(scale, _reduced_expm1(r), scale - 0.5)
    return select(x == 0.0, x, select(k == 0.0, _reduced_expm1(r), y + y))  # the sign of -0 stays


_ATANH_TERMS = {"f32": 5, "f64": 11}  # terms of the series of atanh
_ROOT_HALF = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
_SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1022}


def _log(x: Vector, beside: Vector | None = None) -> Vector:
    """log(x) + beside of finite x > 0: of x = 2^k (1 + f), k log 2 + 2 atanh(s) with s = f / (2 + f)."""
    kind, whole, places = x.kind, _INTEGER[x.kind], _FRACTION[x.kind]
    tiny = x < _SMALLEST[kind]
    lift = places + 2
    x = select(tiny, x * 2.0**lift, x)
    bits = x.bits(whole) - _ROOT_HALF[kind]
    k = ((bits >> places) - select(tiny, x.code.constant(lift, whole), 0)).to(kind)
    f = ((bits & ((1 << places) - 1)) + _ROOT_HALF[kind]).bits(kind) - 1.0
    s = f / (f + 2.0)
    z = s * s
    rest = z * _polynomial(z, [2 / (2 * n + 1) for n in range(1, _ATANH_TERMS[kind])])
    half = 0.5 * f * f
    high, low = _LOG2[kind]
    tail = fma(s, half + rest, k * low)
    if beside is not None:
        tail = tail + beside
    return fma(k, high, f - (half - tail))


def _with_log_limits(x: Vector, y: Vector) -> Vector:
    """y with what a logarithm is of 0, of infinity, below 0 and of NaN."""
    y = select(x == 0.0, -_INF, y)
    return select(x == _INF, _INF, select((x < 0.0) | (x != x), _NAN, y))


def log(x: Vector) -> Vector:
    return _with_log_limits(x, _log(x))


def log2(x: Vector) -> Vector:
    return _with_log_limits(x, _log(x) * (1 / math.log(2)))


def log10(x: Vector) -> Vector:
    return _with_log_limits(x, _log(x) * (1 / math.log(10)))


def log1p(x: Vector) -> Vector:
    """log(u) + (x - (u - 1)) / u with u = 1 + x rounded."""
    u = x + 1.0
    y = _log(u, (x - (u - 1.0)) / u)
    return select(absolute(x) < 2.0 ** -(_FRACTION[x.kind] + 2), x, _with_log_limits(u, y))  # the sign of -0 stays


def _reduce_by_quarter_turn(x: Vector) -> tuple[Vector, Vector]:
    """(k, r): x = k pi / 2 + r, |r| up to pi / 4; numpy takes what is too far out."""
    give_up(~(absolute(x) < _MAX_ARGUMENT[x.kind]))
    first, second, third = _HALF_PI[x.kind]
    k = rint(x * (2 / math.pi))
    r = fma(k, -third, fma(k, -second, fma(k, -first, x)))
    return k.to(_INTEGER[x.kind]), r


_SINE_TERMS = {"f32": 5, "f64": 9}  # terms of sine and cosine on an eighth of a turn


def _sine(r: Vector) -> Vector:
    z = r * r
    return fma(r * z, _polynomial(z, [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, _SINE_TERMS[r.kind])]), r)


def _cosine(r: Vector) -> Vector:
    z = r * r
    half = 0.5 * z
    w = 1.0 - half
    q = _polynomial(z, [(-1) ** n / math.factorial(2 * n) for n in range(2, _SINE_TERMS[r.kind] + 1)])
    return w + fma(z * z, q, (1.0 - w) - half)


def _sine_after_quarters(k: Vector, r: Vector) -> Vector:
    """The sine k quarters of a turn further on."""
    y = select((k & 1) == 0, _sine(r), _cosine(r))
    flip = (k & 2) << {"f32": 30, "f64": 62}[r.kind]
    return (y.bits(_INTEGER[r.kind]) ^ flip).bits(r.kind)


def sin(x: Vector) -> Vector:
    k, r = _reduce_by_quarter_turn(x)
    return _sine_after_quarters(k, r)


def cos(x: Vector) -> Vector:
    k, r = _reduce_by_quarter_turn(x)
    return _sine_after_quarters(k + 1, r)


def tan(x: Vector) -> Vector:
    k, r = _reduce_by_quarter_turn(x)
    return _sine_after_quarters(k, r) / _sine_after_quarters(k + 1, r)


def tanh(x: Vector) -> Vector:
    """-t / (2 + t) with t = expm1(-2 |x|), the sign of x."""
    t = expm1(-2.0 * absolute(x))
    return copysign(-t / (t + 2.0), x)


def sinh(x: Vector) -> Vector:
    """(t + t / (t + 1)) / 2 with t = expm1(|x|), by halves where that overflows."""
    a = absolute(x)
    t = expm1(a)
    h = exp(0.5 * a)
    return copysign(select(a < 80.0, 0.5 * (t + t / (t + 1.0)), (0.5 * h) * h), x)


def cosh(x: Vector) -> Vector:
    h = exp(0.5 * absolute(x))
    return (0.5 * h) * h + 0.5 / h / h
