"""Implicit reparameterisation gradients of samples: of the gamma distribution and of the Dirichlet distribution's components.

Implicit differentiation of F(x; a) = u gives dx/da = -(dF/da) / (dF/dx) (Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018). The
derivatives of the incomplete gamma and beta functions by a are those of their series and continued fractions, term by term (DLMF 8.7.1, 8.9.2,
8.17.22), in float64 whatever the type; for large a of the gamma distribution those of Temme's expansion.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked_together
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.formula_llvm import formula_loop
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.kernels.parts.special import gamma as special
from tritensor.kernels.parts.special import uniform_gamma
from tritensor.kernels.special.gamma import digamma_reference
from tritensor.kernels.special.incomplete_gamma import DV, V, absolute, iterate
from tritensor.llvm.iterate import Iteration
from tritensor.llvm.simd import Vector, select
from tritensor.ops.table import Sample

MOST = 20000.0  # steps, where neither way converges soon


# F = x^a e^-x / gamma(a + 1) S, S = 1 + x / (a + 1) + ...: dx/da = -(x / a) ((log x - digamma(a + 1)) S + dS/da)
@triton.jit
def _gamma_series(a, x):
    term = x * 0.0 + a * 0.0 + 1.0
    total, by_a, harmonic, k = term, term * 0.0, term * 0.0, 0.0
    while maths.any(term > total * 1e-17):
        k += 1.0
        step = maths.div(term * 0.0 + 1.0, a + k)
        term = term * (x * step)
        harmonic = harmonic + step
        total = total + term
        by_a = by_a - term * harmonic
    return maths.div(-x, a) * ((maths.log(x) - special.digamma(a + 1.0)) * total + by_a)


# 1 - F = x^a e^-x / gamma(a) h, h a continued fraction by Lentz's method: dx/da = x ((log x - digamma(a)) h + dh/da)
@triton.jit
def _gamma_fraction(a, x):
    b = x + 1.0 - a
    c = x * 0.0 + a * 0.0 + 1e300
    d = maths.div(c * 0.0 + 1.0, b)
    h, by_a, c_a, d_a = d, d * d, d * 0.0, d * d
    k, off = 0.0, d * 0.0 + 1.0
    while maths.any(off > 2e-15):  # nine units: a GPU's fused roundings keep the last few moving for ever
        k += 1.0
        n = k * (a - k)
        b = b + 2.0
        e = maths.div(off * 0.0 + 1.0, n * d + b)
        d_a = (1.0 - k * d - n * d_a) * e * e
        d = e
        c_a = -1.0 + maths.div(k * c - n * c_a, c * c)
        c = b + maths.div(n, c)
        step = c * d
        more = h * (c_a * d + c * d_a)
        by_a = by_a * step + more
        h = h * step
        off = maths.where(
            k < 20000.0, maths.abs(step - 1.0) + maths.abs(maths.div(more, by_a)), 0.0 * off
        )  # of a whole a the fraction ends, not so dh/da
    return x * ((maths.log(x) - special.digamma(a)) * h + by_a)


@triton.jit
def _standard_gamma_grad(a, x):
    a, x = maths.wide(a), maths.wide(x)
    ordinary = (a > 0) & (x > 0) & (a < float("inf")) & (x < float("inf"))
    a_, x_ = maths.where(ordinary, a, 1.0), maths.where(ordinary, x, 0.5)
    near = (a_ >= uniform_gamma.NEAR) & (maths.abs(x_ - a_) <= 0.3 * a_)
    below = x_ < a_ + 1.0
    y = maths.where(
        below,
        _gamma_series(maths.where(below & (near == 0), a_, 1.0), maths.where(below & (near == 0), x_, 0.5)),
        _gamma_fraction(maths.where(below | near, 1.0, a_), maths.where(below | near, 3.0, x_)),
    )
    y = maths.where(near, uniform_gamma.quantile_by_a(maths.where(near, a_, 200.0), maths.where(near, x_, 200.0)), y)
    return maths.where(ordinary, y, maths.where((a > 0) & (x == 0), 0.0, float("nan")))


# the fraction 1 / (1 + d1 / (1 + d2 / (1 + ...))) of I_x(a, b), DLMF 8.17.22, and its derivative by a (or by b), by Lentz's method
@triton.jit
def _beta_fraction(a, b, x, by_b):
    one = x * 0.0 + a * 0.0 + b * 0.0 + 1.0
    c, d, h = one * 1e300, one, one
    c_, d_, h_ = one * 0.0, one * 0.0, one * 0.0
    m, off = 0.0, one
    while maths.any(off > 2e-15):  # nine units: a GPU's fused roundings keep the last few moving for ever
        first, before = one, h_
        if m > 0:
            even = maths.div(one, (a + 2.0 * m - 1.0) * (a + 2.0 * m))
            p = m * (b - m) * x * even
            p_ = maths.where(by_b, m * x * even, -p * (2.0 * a + 4.0 * m - 1.0) * even)
            e = maths.div(one, 1.0 + p * d)
            d_ = -(p_ * d + p * d_) * e * e
            d = e
            c_ = maths.div(p_ * c - p * c_, c * c)
            c = 1.0 + maths.div(p, c)
            first = c * d
            h_ = h_ * first + h * (c_ * d + c * d_)
            h = h * first
        odd = maths.div(one, (a + 2.0 * m) * (a + 2.0 * m + 1.0))
        q = -(a + m) * (a + b + m) * x * odd
        q_ = -x * odd * maths.where(by_b, a + m, 2.0 * a + b + 2.0 * m) - maths.where(by_b, 0.0, q * (2.0 * a + 4.0 * m + 1.0) * odd)
        e = maths.div(one, 1.0 + q * d)
        d_ = -(q_ * d + q * d_) * e * e
        d = e
        c_ = maths.div(q_ * c - q * c_, c * c)
        c = 1.0 + maths.div(q, c)
        step = c * d
        h_ = h_ * step + h * (c_ * d + c * d_)
        h = h * step
        m += 1.0
        moved = maths.abs(h_ - before) - maths.abs(h_) * 4e-15  # of a whole b the fraction ends, not so its derivative
        off = maths.where(m < 20000.0, maths.abs(step * first - 1.0) + maths.where(moved > 0, one, 0.0 * one), 0.0 * off)
    return h, h_


# I = x^a (1 - x)^b / (a B(a, b)) h; 1 - I the same of 1 - x, b and a, where that converges sooner; -(dI/da) / (dI/dx) / (1 - x)
@triton.jit
def _dirichlet_grad(x, a, total):
    x, a, total = maths.wide(x), maths.wide(a), maths.wide(total)
    b = total - a
    ordinary = (x > 0) & (x <= 1.0) & (a > 0) & (b > 0) & (total < float("inf"))
    x_, a_, b_ = maths.where(ordinary, x, 0.25), maths.where(ordinary, a, 1.0), maths.where(ordinary, b, 1.0)
    direct = x_ * (a_ + b_ + 2.0) < a_ + 1.0
    h, h_ = _beta_fraction(maths.where(direct, a_, b_), maths.where(direct, b_, a_), maths.where(direct, x_, 1.0 - x_), direct == 0)
    level = maths.log(x_) + special.digamma(a_ + b_) - special.digamma(maths.where(direct, a_ + 1.0, a_))
    y = maths.div(x_, maths.where(direct, -a_, b_)) * (h * level + h_)
    return maths.where(ordinary, y, maths.where((a > 0) & (b >= 0) & (x >= 0), 0.0, float("nan")))


_ENOUGH = {4: 1e-9, 8: 4e-16}  # how little a step may still change, by the bytes of the result's type


# -- numpy's side: each element by its own way alone
def _where(condition: Any, a: Any, b: Any) -> Any:
    return select(condition, a, b) if isinstance(condition, Vector) else np.where(condition, a, b)


@functools.cache
def _series_steps(enough: float) -> Iteration:
    def step(k: Any, a: Any, x: Any, term: Any, total: Any, by_a: Any, harmonic: Any) -> Any:
        part = 1.0 / (a + k)
        term = term * (x * part)
        harmonic = harmonic + part
        return a, x, term, total + term, by_a - term * harmonic, harmonic

    return Iteration(step, lambda k, a, x, term, total, *_: term > total * (0.1 * enough))


def _numpy_series(a: np.ndarray, x: np.ndarray, enough: float) -> np.ndarray:
    one, zero = np.ones_like(x), np.zeros_like(x)
    _, _, _, total, by_a, _ = iterate(_series_steps(enough), (a, x, one, one, zero, zero))
    return -x / a * ((np.log(x) - _digamma(a + 1.0)) * total + by_a)


@functools.cache
def _fraction_steps(enough: float) -> Iteration:
    def step(k: Any, a: Any, b: Any, c: Any, d: Any, c_a: Any, d_a: Any, h: Any, by_a: Any, off: Any) -> Any:
        n, b = k * (a - k), b + 2.0
        e = 1.0 / (n * d + b)
        d_a = (1.0 - k * d - n * d_a) * e * e
        c_a = -1.0 + (k * c - n * c_a) / (c * c)
        c = b + n / c
        ratio, more = c * e, h * (c_a * e + c * d_a)
        by_a = by_a * ratio + more
        return a, b, c, e, c_a, d_a, h * ratio, by_a, absolute(ratio - 1.0) + absolute(more / by_a)

    return Iteration(step, lambda k, *s: (s[8] > enough) & (k < MOST))


def _numpy_fraction(a: np.ndarray, x: np.ndarray, enough: float) -> np.ndarray:
    b = x + 1.0 - a
    d = 1.0 / b
    start = (a, b, np.full_like(x, 1e300), d, np.zeros_like(x), d * d, d, d * d, np.ones_like(x))
    *_, h, by_a, _ = iterate(_fraction_steps(enough), start)
    return x * ((np.log(x) - _digamma(a)) * h + by_a)


_digamma, _near_numpy = map(backends.in_numpy, (special.digamma, uniform_gamma.quantile_by_a))


_NEAR_LOOP = formula_loop(uniform_gamma.quantile_by_a)
_PAYS = 12288  # elements from which on compiling that long formula pays


def _numpy_near(a: np.ndarray, x: np.ndarray, enough: float) -> np.ndarray:
    out = np.empty(a.size)
    return out if a.size >= _PAYS and _NEAR_LOOP((a, x), out) else _near_numpy(a, x)


_NEAR = uniform_gamma.NEAR.value


def _standard_gamma_block(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    enough = _ENOUGH[out.dtype.itemsize]
    a, x = (v.astype(np.float64) for v in np.broadcast_arrays(a, x))
    y = np.where((a > 0) & (x == 0), 0.0, np.nan)
    ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    near = ordinary & (a >= _NEAR) & (np.abs(x - a) <= 0.3 * a)
    below = ordinary & ~near & (x < a + 1.0)
    for mask, way in ((near, _numpy_near), (below, _numpy_series), (ordinary & ~near & ~below, _numpy_fraction)):
        at = np.flatnonzero(mask)
        if at.size:
            y[at] = way(a[at], x[at], enough)
    np.copyto(out, y, casting="same_kind")


def _beta_turn(p: Any, p_: Any, c: Any, c_: Any, d: Any, d_: Any, h: Any, h_: Any) -> Any:
    e = 1.0 / (1.0 + p * d)
    d_ = -(p_ * d + p * d_) * e * e
    c_ = (p_ * c - p * c_) / (c * c)
    c = 1.0 + p / c
    step = c * e
    return c, c_, e, d_, h * step, h_ * step + h * (c_ * e + c * d_), step


def _beta_odd(m: Any, a: Any, b: Any, x: Any, by_b: Any, *state: Any) -> Any:
    """The turn of number 2 m + 1."""
    odd = 1.0 / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
    q = -(a + m) * (a + b + m) * x * odd
    q_ = _where(by_b > 0.5, -x * odd * (a + m), -x * odd * (2.0 * a + b + 2.0 * m) - q * (2.0 * a + 4.0 * m + 1.0) * odd)
    return _beta_turn(q, q_, *state)


@functools.cache
def _beta_steps(enough: float) -> Iteration:
    def step(m: Any, a: Any, b: Any, x: Any, by_b: Any, *state: Any) -> Any:
        before, state = state[5], state[:6]
        even = 1.0 / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        p = m * (b - m) * x * even
        *state, first = _beta_turn(p, _where(by_b > 0.5, m * x * even, -p * (2.0 * a + 4.0 * m - 1.0) * even), *state)
        *state, second = _beta_odd(m, a, b, x, by_b, *state)
        moved = _where(absolute(state[5] - before) > absolute(state[5]) * enough, 1.0 + 0.0 * x, 0.0)
        return a, b, x, by_b, *state, absolute(first * second - 1.0) + moved

    return Iteration(step, lambda m, *s: (s[10] > enough) & (m < MOST))


def _numpy_beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray, by_b: np.ndarray, enough: float) -> tuple[np.ndarray, ...]:
    one, zero, by = np.ones_like(x), np.zeros_like(x), by_b.astype(x.dtype)
    *state, _ = _beta_odd(0.0, a, b, x, by, one * 1e300, zero, one, zero, one, zero)
    *_, h, h_, _ = iterate(_beta_steps(enough), (a, b, x, by, *state, one))
    return h, h_


def _dirichlet_block(x: np.ndarray, a: np.ndarray, total: np.ndarray, out: np.ndarray) -> None:
    enough = _ENOUGH[out.dtype.itemsize]
    x, a, total = (np.broadcast_to(v, out.shape).astype(np.float64) for v in (x, a, total))
    b = total - a
    y = np.where((a > 0) & (b >= 0) & (x >= 0), 0.0, np.nan)
    at = np.flatnonzero((x > 0) & (x <= 1.0) & (a > 0) & (b > 0) & np.isfinite(total))
    if at.size:
        x, a, b = x[at], a[at], b[at]
        direct = x * (a + b + 2.0) < a + 1.0
        h, h_ = _numpy_beta_fraction(np.where(direct, a, b), np.where(direct, b, a), np.where(direct, x, 1.0 - x), ~direct, enough)
        level = np.log(x) + _digamma(a + b) - _digamma(np.where(direct, a + 1.0, a))
        y[at] = x / np.where(direct, -a, b) * (h * level + h_)
    np.copyto(out, y, casting="same_kind")


# The integral of (log t - c) t^(a - 1) ... from 0 to x, c such that it is 0 as a whole: where the mass above x is the smaller, that of the rest, negated.
def _gamma_reference(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, x = np.broadcast_arrays(a, x)
    v = np.where(x < a, -1, 1)[..., None] * V  # t = x e^v
    level = (np.log(x) - digamma_reference(a))[..., None]
    y = np.sign(v[..., 0]) * x * np.sum((level + v) * np.exp(a[..., None] * v - x[..., None] * np.expm1(v)) * DV, axis=-1)
    return np.where((a > 0) & (x > 0) & np.isfinite(a + x), y, np.where((a > 0) & (x == 0), 0, np.nan))


def _dirichlet_reference(x: np.ndarray, a: np.ndarray, total: np.ndarray) -> np.ndarray:
    b = total - a
    level = digamma_reference(a) - digamma_reference(total)
    inside = (x > 0) & (x <= 1) & (a > 0) & (b > 0) & (total < np.inf)
    lower, p, q, level = (v[..., None] for v in np.broadcast_arrays(x, a, b, level))
    near, far = lower * np.exp(-V), 1 - (1 - lower) * np.exp(-V)  # t below x, and above
    below = (np.log(lower) - V - level) * np.exp(-p * V) * ((1 - near) / (1 - lower)) ** (q - 1)
    above = (np.log(far) - level) * (far / lower) ** (p - 1) * np.exp(-q * V)
    y = np.where(x * total < a, -x / (1 - x) * np.sum(below * DV, axis=-1), np.sum(above * DV, axis=-1))
    return np.where(inside, y, np.where((a > 0) & (b >= 0) & (x >= 0), 0, np.nan))


def _far(rng: np.random.Generator) -> list[Sample]:
    a = np.array([150.0, 1e6, 300.0, 1e-2, 0.4, 30.0, 1.0, 1.0, -1.0, np.nan])
    x = np.array([140.0, 1e6, 100.0, 1e-9, 6.0, 12.0, 0.0, np.inf, 1.0, 1.0])
    return [Sample(a, x, smooth=False)]


def _corners(rng: np.random.Generator) -> list[Sample]:
    x = np.array([0.5, 1e-8, 0.99, 1.0, 0.0, 0.02, 0.3, 0.5, -1.0])
    a = np.array([50.0, 0.02, 1.0, 2.0, 2.0, 300.0, 2.0, 1.0, 1.0])
    return [Sample(x, a, a + np.array([50.0, 3.0, 0.5, 1.0, 1.0, 9000.0, 0.0, -0.5, 1.0]), smooth=False)]


_WIDE = {1 << k: HEAVY[8] for k in range(4)}  # every type is computed in float64
_GAMMA, _BETA = (Domain(3.0, 6.0), Domain(0.5, 14.0)), (Domain(0.1, 0.9), Domain(0.4, 4.0), Domain(4.5, 9.0))
elementwise(
    "standard_gamma_grad", _standard_gamma_grad, None, _gamma_reference, cpu=blocked_together(_standard_gamma_block), kinds=("float",), domain=_GAMMA,
    samples=lambda rng: [Sample(_GAMMA[0].draw(rng, (3, 5)), _GAMMA[1].draw(rng, (5,))), *_far(rng)], dtypes=("float64",), heavy=_WIDE, native=(),
    doc="dx/da of a number x drawn from the gamma distribution of concentration a: -(dP(a, x)/da) / (dP(a, x)/dx).",
)  # fmt: skip
elementwise(
    "dirichlet_grad", _dirichlet_grad, None, _dirichlet_reference, cpu=blocked_together(_dirichlet_block), kinds=("float",), domain=_BETA,
    samples=lambda rng: [Sample(*[d.draw(rng, (3, 5)) for d in _BETA]), *_corners(rng)], dtypes=("float64",), heavy=_WIDE, native=(),
    doc="-(dI_x(a, b)/da) / (dI_x(a, b)/dx) / (1 - x) with b = total - a: how a component x of a Dirichlet vector moves with its concentration a.",
)  # fmt: skip
