"""Functions of `maths` on SIMD vectors: the back end that compiles a formula for this processor (see tritensor/llvm)."""

from __future__ import annotations

import math
import types
from typing import Any

from tritensor.kernels.parts.cpu import special
from tritensor.kernels.parts.random_words import draws_on_cpu
from tritensor.llvm import simd_functions as native
from tritensor.llvm.simd import NotVectorizableError, Vector, fma, give_up, select


def horner(x: Vector, coefficients: Any) -> Vector:
    """c0 x^n + ... + cn by Horner's rule, each step rounded once."""
    values = getattr(coefficients, "value", coefficients)
    first, *rest = (float(c) for c in values)
    y = x.code.constant(first, x.kind)
    for c in rest:
        y = fma(y, x, c)
    return y


def _ratio(x: Vector, function: Any) -> Vector:
    above, below = function.value[2:] if x.kind == "f64" else function.value[:2]
    y = horner(x, above)
    return y / horner(x, below) if len(below) > 1 else y


def _quotient(pair: tuple[Any, ...], x: Vector) -> Vector:
    return horner(x, pair[0]) / horner(x, pair[1])


def _mass_beyond(t: Vector, scale: float) -> Vector:
    """erfc(t) for scale 1, the normal distribution's mass beyond t for scale 1/2, t >= 0: exp(-scale t^2) over special's damped quotient.

    What rounding t^2 loses comes back to first order. To 3 ulp.
    """
    one, c, m, q = special.DAMPED[scale, {"f32": "float32", "f64": "float64"}[t.kind]]
    square = t * t
    lost = fma(t, t, -square)
    grown = native.exp(square * -scale)
    grown = fma(grown, lost * -scale, grown)
    below = horner(t, q)  # one division: one + t (c - m / q) is (one q + t (c q - m)) / q
    return grown * below / fma(fma(below, c, -horner(t, m)), t, below * float(one))


_ENDS = {(1.0, "f32"): 11.0, (1.0, "f64"): 27.5, (0.5, "f32"): 15.0, (0.5, "f64"): 38.5}


def _tail(x: Vector, scale: float) -> Vector:
    """The mass beyond |x|, 0 where it is below every number."""
    t = native.absolute(x)
    end = _ENDS[scale, x.kind]
    return _mass_beyond(select(t > end, end, t), scale)


def erfc(x: Vector) -> Vector:
    y = _tail(x, 1.0)
    return select(x < 0, 2.0 - y, y)


def normal_cdf(x: Vector) -> Vector:
    y = _tail(x, 0.5)
    return select(x > 0, 1.0 - y, y)


_NEAR = {"f32": 1.0, "f64": 0.46875}


def erf(x: Vector) -> Vector:
    """Near 0 x times a quotient in x^2 (Cody's; in float32 the tanh of special's), beyond 1 - erfc."""
    if x.kind == "f32":
        z = select(x > 6.0, 6.0, select(x < -6.0, -6.0, x))
        u = z * z
        return native.tanh(z * fma(_quotient(special.ERF, u), u, 2 / math.sqrt(math.pi)))
    near = x * _quotient(special.SMALL, x * x)
    far = native.copysign(1.0 - _tail(x, 1.0), x)
    return select(native.absolute(x) < _NEAR[x.kind], near, far)


def _hypot(a: Vector, b: Vector) -> Vector:
    """float32 through float64, where squares neither overflow nor vanish; float64 is numpy's."""
    if a.kind != "f32":
        raise NotVectorizableError("hypot of float64")
    wide_a, wide_b = a.to("f64"), b.to("f64")
    y = native.sqrt(fma(wide_a, wide_a, wide_b * wide_b)).to("f32")
    infinite = (native.absolute(a) == math.inf) | (native.absolute(b) == math.inf)
    return select(infinite, math.inf, y)


# A quotient of two float32 that is no whole number is at least 2^-24 away from one (relative to the divisor's place), and below 2^28 float64
# rounds it by less than 2^-25: it has the right whole part n. n b has at most 52 bits, so that a - n b is exact.
_EXACT = 2.0**28


def _whole_quotient(a: Vector, b: Any, rounding: Any) -> tuple[Vector, Vector, Vector]:
    """(a, b, n) in float64 of two float32, n = rounding(a / b); float64, large quotients and infinities are numpy's."""
    if a.kind != "f32":
        raise NotVectorizableError("remainders of float64")
    wide_a, wide_b = a.to("f64"), (b if isinstance(b, Vector) else a.code.constant(b, a.kind)).to("f64")
    q = wide_a / wide_b
    give_up(~((native.absolute(q) < _EXACT) & (native.absolute(wide_b) < math.inf)))
    return wide_a, wide_b, rounding(q)


def _fmod(a: Vector, b: Any) -> Vector:
    wide_a, wide_b, n = _whole_quotient(a, b, native.trunc)
    r = (wide_a - n * wide_b).to("f32")
    return select(r == 0, native.copysign(r, a), r)


def _floor_divide(a: Vector, b: Any) -> Vector:
    return _whole_quotient(a, b, native.floor)[2].to("f32")


def _trunc_divide(a: Vector, b: Any) -> Vector:
    return native.trunc(a / b)


def _pow(a: Vector, b: Any) -> Vector:
    """float32: 2^(b log2 |a|) in float64, whose digits cover what the product's rounding costs; float64 is numpy's. Special cases as in C's pow."""
    if a.kind != "f32":
        raise NotVectorizableError("pow of float64")
    b = b if isinstance(b, Vector) else a.code.constant(b, a.kind)
    size = native.absolute(a)
    y = native.exp2(b.to("f64") * native.log2(size.to("f64"))).to("f32")
    half = 0.5 * b
    whole, odd = native.floor(b) == b, native.floor(half) != half  # an infinity is whole and even
    y = select((a.bits("i32") < 0) & whole & odd, -y, y)
    y = select((a < 0.0) & ~whole & (size != math.inf), math.nan, y)
    return select((a == 1.0) | (b == 0.0) | ((size == 1.0) & (native.absolute(b) == math.inf)), 1.0, y)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return (a if condition else b) if isinstance(condition, bool) else select(condition, a, b)


def _div(a: Any, b: Any) -> Vector:
    return a / b


def _safe(g: Vector, d: Any) -> Any:
    return select((g == 0) & (d == 0), 1.0, d if isinstance(d, Vector) else g.code.constant(d, g.kind))


def _chain(g: Vector, factor: Any) -> Vector:
    return select(g == 0, 0.0, g * factor)


def _sign(x: Vector) -> Vector:
    one = x.code.constant(1, x.kind)
    return select(x > 0, one, select(x < 0, x.code.constant(-1, x.kind), x.code.constant(0, x.kind)))


class _VectorFunctions(types.SimpleNamespace):
    """The functions of `maths`; one that is missing raises, and numpy computes the formula."""

    def __getattr__(self, name: str) -> Any:
        raise NotVectorizableError(f"{name} on lanes")

    def having(self, **others: Any) -> _VectorFunctions:
        """The same with other functions beside or in place of these."""
        return _VectorFunctions(**{**vars(self), **others})


on_vectors = _VectorFunctions(
    exp=native.exp, exp2=native.exp2, expm1=native.expm1, log=native.log, log2=native.log2, log10=native.log10, log1p=native.log1p,
    sin=native.sin, cos=native.cos, tan=native.tan, tanh=native.tanh, sinh=native.sinh, cosh=native.cosh, sqrt=native.sqrt,
    rsqrt=lambda x: 1.0 / native.sqrt(x), abs=native.absolute, floor=native.floor, ceil=native.ceil, trunc=native.trunc, rint=native.rint,
    maximum=native.maximum, minimum=native.minimum, div=_div, neg=lambda x: -x, zeros=lambda x: x.code.constant(0, x.kind),
    ones=lambda x: x.code.constant(1, x.kind), where=_where, sign=_sign, sigmoid=lambda x: 1.0 / (1.0 + native.exp(-x)),
    one_minus_square=lambda x: (1.0 - x) * (1.0 + x), both=lambda a, b: a & b, either=lambda a, b: a | b, safe=_safe, chain=_chain,
    tame=lambda g, y: select(g == 0, 0.0, y), chain_div=lambda g, a, d: _chain(g, a / d), gated=lambda g, x: g / (1.0 + native.exp(-x)),
    erf=erf, erfc=erfc, normal_cdf=normal_cdf, hypot=_hypot, pow=_pow, fmod=_fmod,
    floor_divide=_floor_divide, trunc_divide=_trunc_divide, horner=horner, ratio=_ratio,
    choose=lambda condition, one, other, x: select(condition, one(x), other(x)), square_rest=lambda x: fma(x, x, -(x * x)),
    wide=lambda x: x.to("f64"), signbit=lambda x: x.bits({"f32": "i32", "f64": "i64"}[x.kind]) < 0,
    draws=draws_on_cpu.on_vectors,
)  # fmt: skip
