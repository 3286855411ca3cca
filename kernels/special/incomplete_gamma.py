"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), in float64 whatever the type.

Sources: DLMF 8.7.1 (the series) and 8.9.2 (the continued fraction, evaluated by Lentz's method), and Temme's expansion for large a where x is near
it, where both would need some ten sqrt(a) steps (kernels/parts/special/uniform_gamma.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked_together
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.pointwise_samples import Domain, few
from tritensor.kernels.parts.special import gamma as special
from tritensor.kernels.parts.special import uniform_gamma
from tritensor.llvm import simd_functions
from tritensor.llvm.iterate import Iteration
from tritensor.llvm.simd import Vector
from tritensor.ops.table import Sample


# x^a e^-x / gamma(a + 1)
@triton.jit
def _front(a, x):
    return maths.exp(a * maths.log(x) - x - special.lgamma(a + 1.0))


# P = front (1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...), for x < a + 1
@triton.jit
def _series(a, x):
    term = x * 0.0 + a * 0.0 + 1.0
    total = term
    k = 0.0
    while maths.any(term > total * 1e-17):
        k += 1.0
        term = term * maths.div(x, a + k)
        total = total + term
    return total


# Q = -(u - 1) - u a (-x / (a + 1) + x^2 / (2! (a + 2)) - ...), u = x^a / gamma(a + 1): terms above 0, where P is nearly 1, for a < 1/2 and x < 1
@triton.jit
def _rest(a, x):
    term = x * 0.0 + a * 0.0 + 1.0
    total = term * 0.0
    k = 0.0
    while maths.any(maths.abs(term) > 1e-18):
        k += 1.0
        term = -term * maths.div(x, k + x * 0.0)
        total = total + maths.div(term, a + k)
    u = a * maths.log(x) - special.lgamma1p(a)
    return -maths.expm1(u) - maths.exp(u) * a * total


# Q = front a / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), for x >= a + 1
@triton.jit
def _fraction(a, x):
    b = x + 1.0 - a
    c = x * 0.0 + 1e300
    d = maths.div(x * 0.0 + 1.0, b)
    h = d
    k = 0.0
    off = x * 0.0 + 1.0
    while maths.any(off > 2e-15):  # nine units: a GPU's fused roundings keep the last few moving for ever
        k += 1.0
        n = k * (a - k)
        b = b + 2.0
        d = maths.div(x * 0.0 + 1.0, n * d + b)
        c = b + maths.div(n, c)
        step = c * d
        h = h * step
        off = maths.where(k < 4000.0, maths.abs(step - 1.0), 0.0 * off)
    return h


# P(a, x) for the elements where lower, Q(a, x) for the others: each way where it converges fast, on stand-ins elsewhere
@triton.jit
def _incomplete(a, x, lower):
    ordinary = (a > 0) & (x > 0) & (a < float("inf")) & (x < float("inf"))
    a_, x_ = maths.where(ordinary, a, 1.0), maths.where(ordinary, x, 0.5)
    near = (a_ >= uniform_gamma.NEAR) & (maths.abs(x_ - a_) <= 0.3 * a_)
    below = x_ < a_ + 1.0
    small, large = below & (near == 0), (below == 0) & (near == 0)
    front = _front(a_, x_)
    p = front * _series(maths.where(small, a_, 1.0), maths.where(small, x_, 0.5))
    q = front * a_ * _fraction(maths.where(large, a_, 1.0), maths.where(large, x_, 3.0))
    y = maths.where(below, maths.where(lower, p, 1.0 - p), maths.where(lower, 1.0 - q, q))
    little = (a_ < 0.5) & (x_ < 1.0) & (lower == 0)
    y = maths.where(little, _rest(maths.where(little, a_, 0.25), maths.where(little, x_, 0.5)), y)
    y = maths.where(near, uniform_gamma.incomplete(maths.where(near, a_, 200.0), maths.where(near, x_, 200.0), lower), y)
    full = maths.where(lower, 1.0, 0.0)
    y = maths.where(ordinary, y, maths.where((x == 0) | (a == float("inf")), 1.0 - full, full))
    wrong = (a < 0) | (x < 0) | (a != a) | (x != x) | ((a == 0) & (x == 0)) | ((a == float("inf")) & (x == float("inf")))
    return maths.where(wrong, float("nan"), y)


@triton.jit
def _igamma(a, x):
    a, x = maths.wide(a), maths.wide(x)
    return _incomplete(a, x, x == x)


@triton.jit
def _igammac(a, x):
    a, x = maths.wide(a), maths.wide(x)
    return _incomplete(a, x, x != x)


# -- numpy's side: each element by its own way alone, in machine code where there are many
_MANY = 256  # elements from which the way through ctypes pays


def iterate(iteration: Iteration, state: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """What the state comes to when every element is done."""
    found = iteration(state) if state[0].size >= _MANY else None
    return iteration.in_numpy(state) if found is None else found


def absolute(x: Any) -> Any:
    """|x| of an array, or of what stands for one in machine code."""
    return simd_functions.absolute(x) if isinstance(x, Vector) else np.abs(x)


def _add_term(k: Any, a: Any, x: Any, term: Any, total: Any) -> Any:
    term = term * (x / (a + k))
    return a, x, term, total + term


_SERIES = Iteration(_add_term, lambda k, a, x, term, total: term > total * 1e-17)


def _sum_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """_series on numpy."""
    one = np.ones_like(x)
    return iterate(_SERIES, (a, x, one, one))[3]


def _rest_numpy(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """_rest on numpy: of x < 1 eighteen terms are all."""
    term, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, 20):
        term *= -x / k
        total += term / (a + k)
    u = a * np.log(x) - _lgamma1p_numpy(a)
    return -np.expm1(u) - np.exp(u) * a * total


def _turn_fraction(k: Any, a: Any, b: Any, c: Any, d: Any, h: Any) -> Any:
    n, b = k * (a - k), b + 2.0
    d = 1.0 / (n * d + b)
    c = b + n / c
    return a, b, c, d, h * (c * d)


_FRACTION = Iteration(_turn_fraction, lambda k, a, b, c, d, h: (absolute(c * d - 1.0) > 4e-16) & (k < 4000.0))


def _evaluate_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """_fraction on numpy."""
    b = x + 1.0 - a
    d = 1.0 / b
    return iterate(_FRACTION, (a, b, np.full_like(x, 1e300), d, d))[4]


_NEAR = uniform_gamma.NEAR.value
_near_numpy, _lgamma1p_numpy, _front_numpy = map(backends.in_numpy, (uniform_gamma.incomplete, special.lgamma1p, _front))


def _cpu(lower: bool) -> Callable[..., np.ndarray]:
    """_incomplete on numpy: each element by its own way alone."""

    def block(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
        a, x = (v.astype(np.float64) for v in np.broadcast_arrays(a, x))
        full = float(lower)
        y = np.where((x == 0) | np.isposinf(a), 1.0 - full, full)
        ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        near = ordinary & (a >= _NEAR) & (np.abs(x - a) <= 0.3 * a)
        at = np.flatnonzero(near)
        if at.size:
            y[at] = _near_numpy(a[at], x[at], np.full(at.size, lower))
        below = ordinary & ~near & (x < a + 1.0)
        for mask, way in ((below, True), (ordinary & ~near & ~below, False)):
            at = np.flatnonzero(mask)
            a_, x_ = a[at], x[at]
            part = _front_numpy(a_, x_) * (_sum_series(a_, x_) if way else a_ * _evaluate_fraction(a_, x_))
            y[at] = part if way == lower else 1.0 - part
        at = np.flatnonzero(ordinary & (a < 0.5) & (x < 1.0)) if not lower else ()
        if len(at):
            y[at] = _rest_numpy(a[at], x[at])
        wrong = (a < 0) | (x < 0) | np.isnan(a) | np.isnan(x) | ((a == 0) & (x == 0)) | (np.isposinf(a) & np.isposinf(x))
        y[wrong] = np.nan
        out[...] = y

    return blocked_together(block)


_lgamma = np.vectorize(lambda x: math.lgamma(x) if x > 0 else math.nan, otypes=[np.float64])


def _logarithm_of_front(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """log(x^a e^-x / gamma(a)); for large a by Stirling's series, DLMF 5.11.1, in which the large terms have gone."""
    d = (x - a) / a
    stirling = a * (np.log1p(d) - d) + np.log(a / (2 * np.pi)) / 2 - (1 / 12 - (1 / 360 - 1 / 1260 / (a * a)) / (a * a)) / a
    return np.where(a < 20, a * np.log(x) - x - _lgamma(a), stirling)


# the integral over v > 0 of what falls exponentially as sum f(V) DV: the trapezoidal rule in u, v = exp(u - e^-u)
_U, _STEP = np.linspace(-4, 9, 4001, retstep=True)
V = np.exp(_U - np.exp(-_U))
DV = V * (1 + np.exp(-_U)) * _STEP


def _integral(lower: bool) -> Callable[..., np.ndarray]:
    """P(a, x) or Q(a, x), DLMF 8.2.4, with t = x e^-v below x and x e^v above."""

    def reference(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        v = -V if lower else V
        y = np.exp(_logarithm_of_front(a, x)) * np.sum(np.exp(a[..., None] * v - x[..., None] * np.expm1(v)) * DV, axis=-1)
        y = np.where(x == 0, 1.0 - lower, np.where(x == np.inf, lower, y))
        y = np.where(a == 0, lower, np.where(a == np.inf, 1.0 - lower, y))
        wrong = (a < 0) | (x < 0) | np.isnan(a + x) | ((a == 0) & (x == 0)) | ((a == np.inf) & (x == np.inf))
        return np.where(wrong, np.nan, y)

    return reference


# dP/dx = x^(a - 1) e^-x / gamma(a); by a there is no gradient, as in PyTorch
@triton.jit
def _igamma_x(g, a, x):
    return g * maths.exp((a - 1.0) * maths.log(x) - x - special.lgamma(a))


@triton.jit
def _igammac_x(g, a, x):
    return -g * maths.exp((a - 1.0) * maths.log(x) - x - special.lgamma(a))


def _extremes(rng: np.random.Generator) -> list[Sample]:
    a = np.array([0.0, 0.0, 1.0, np.inf, 1.0, -1.0, np.nan, 30.0, 30.0, np.inf, 150.0, 1e9])
    x = np.array([0.0, 1.0, 0.0, 1.0, np.inf, 1.0, 1.0, 25.0, 40.0, np.inf, 140.0, 1e9 + 1e4])
    return [Sample(a, x, smooth=False)]


_BOTH = (Domain(0.5, 6.0), Domain(0.5, 9.0))
for _name, _formula, _gradient in (("igamma", _igamma, _igamma_x), ("igammac", _igammac, _igammac_x)):
    elementwise(
        _name, _formula, (None, _gradient), _integral(_name == "igamma"), cpu=_cpu(_name == "igamma"), kinds=("float",), domain=_BOTH,
        samples=few(*_BOTH, extra=_extremes), dtypes=("float64",), heavy={1 << k: HEAVY[8] for k in range(4)},  # every type is computed in float64
    )  # fmt: skip
