"""Draws from further distributions: poisson and binomial, and cauchy_, geometric_, log_normal_ in place.

The counts of poisson and binomial are drawn on the host, by Philox words, so that they are the same on every device: by inversion where
few are expected, else by transformed rejection (W. Hörmann, "The transformed rejection method for generating Poisson random variables",
1993, algorithm PTRS; "The generation of binomial random variates", 1993, algorithm BTRS).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.array import empty, empty_like, from_host, to_host
from tritensor.ops.table import broadcast, ops
from tritensor.random import Generator
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.random import Drawn, compute_type, draw_normal, draw_on_host, draw_uniform, to_positive_dtype
from tritensor.tensor.public_api.publish import function

CHUNK = 16384  # numbers drawn at a time, in the cache
FEW = 10.0  # below so many expected, counting up is faster than rejection
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SMALL_TAILS = np.array([math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + _HALF_LOG_2PI) for k in range(10)])


def _stirling_tail(k: np.ndarray) -> np.ndarray:
    """log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2."""
    m = k + 1.0
    series = (1 / 12 - (1 / 360 - 1 / 1260 / (m * m)) / (m * m)) / m
    return np.where(k < 10, _SMALL_TAILS[np.minimum(k, 9).astype(np.int64)], series)


def _log_factorial(k: np.ndarray) -> np.ndarray:
    return (k + 0.5) * np.log(k + 1) - (k + 1) + _HALF_LOG_2PI + _stirling_tail(k)


def _draw_by_rejection(n: int, generator: Generator | None, propose: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> np.ndarray:
    """n numbers: each round draws two uniforms for all that are open; `propose(open, u, v)` gives numbers and which are accepted."""
    found = np.zeros(n)
    open_ = np.arange(n)
    while open_.size:
        u, v = draw_on_host(draw_uniform, (2 * open_.size,), generator).reshape(2, -1)
        k, fine = propose(open_, u - 0.5, v)
        found[open_[fine]] = k[fine]
        open_ = open_[~fine]
    return found


def _draw_by_inversion(u: np.ndarray, first: np.ndarray, following: Callable[[np.ndarray, int], np.ndarray]) -> np.ndarray:
    """The least k whose cumulative probability is above u: P(0) is `first`, P(k) = P(k - 1) * following(which, k)."""
    k = np.zeros(u.size)
    open_, p, left = np.arange(u.size), first, u - first
    at = 0
    while True:
        going = left >= 0
        open_, p, left = open_[going], p[going], left[going]
        at += 1
        if not open_.size or at > 200:  # of FEW expected, 200 do not come
            return k
        k[open_] = at
        p = p * following(open_, at)
        left = left - p


# -- Poisson
def _draw_poisson(rate: np.ndarray, generator: Generator | None) -> np.ndarray:
    out = np.zeros(rate.size)
    few = (rate < FEW).nonzero()[0]
    if few.size:
        small = rate[few]
        out[few] = _draw_by_inversion(draw_on_host(draw_uniform, (few.size,), generator), np.exp(-small), lambda which, k: small[which] / k)
    # An infinite rate would never be accepted: its number is infinite.
    many = ((rate >= FEW) & (rate < np.inf)).nonzero()[0]
    if many.size:
        out[many] = _draw_poisson_ptrs(rate[many], generator)
    out[rate == np.inf] = np.inf
    return out


def _draw_poisson_ptrs(rate: np.ndarray, generator: Generator | None) -> np.ndarray:
    """PTRS."""
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    log_rate = np.log(rate)

    def propose(o: np.ndarray, u: np.ndarray, v: np.ndarray) -> Any:
        us = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a[o] / us + b[o]) * u + rate[o] + 0.43)
            log_v = np.log(v * inverse_alpha[o] / (a[o] / (us * us) + b[o]))
            fine = log_v <= k * log_rate[o] - rate[o] - _log_factorial(np.maximum(k, 0))
        return k, ((us >= 0.07) & (v <= v_r[o])) | ((k >= 0) & ~((us < 0.013) & (v > us)) & fine)

    return _draw_by_rejection(rate.size, generator, propose)


# -- binomial
def _draw_binomial(count: np.ndarray, prob: np.ndarray, generator: Generator | None) -> np.ndarray:
    # Inversion counts successes up from 0, which is short only where they are few.
    p = np.where(prob > 0.5, 1 - prob, prob)  # of what comes less often
    expected = count * p
    out = np.zeros(count.size)
    few = ((expected > 0) & (expected < FEW)).nonzero()[0]
    if few.size:
        n, odds = count[few], p[few] / (1 - p[few])
        nothing = np.exp(n * np.log1p(-p[few]))
        u = draw_on_host(draw_uniform, (few.size,), generator)
        out[few] = _draw_by_inversion(u, nothing, lambda which, k: np.maximum(n[which] - (k - 1), 0) / k * odds[which])
    many = (expected >= FEW).nonzero()[0]
    if many.size:
        out[many] = _draw_binomial_btrs(count[many], p[many], generator)
    return np.where(prob > 0.5, count - out, out)


def _draw_binomial_btrs(n: np.ndarray, p: np.ndarray, generator: Generator | None) -> np.ndarray:
    """BTRS."""
    spread = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = p / (1 - p)
    m = np.floor((n + 1) * p)

    def propose(o: np.ndarray, u: np.ndarray, v: np.ndarray) -> Any:
        us = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a[o] / us + b[o]) * u + c[o])
            log_v = np.log(v * alpha[o] / (a[o] / (us * us) + b[o]))
            inside = (k >= 0) & (k <= n[o])
            j = np.clip(k, 0, n[o])
            bound = _log_factorial(m[o]) + _log_factorial(n[o] - m[o]) - _log_factorial(j) - _log_factorial(n[o] - j)
            bound += (j - m[o]) * np.log(odds[o])
        return k, ((us >= 0.07) & (v <= v_r[o])) | (inside & (log_v <= bound))

    return _draw_by_rejection(n.size, generator, propose)


# -- public
def _require_float(name: str, label: str, x: Tensor) -> None:
    if x.dtype.kind != "float":
        raise DTypeError(f"{name}: {label} is {x.dtype.name}; give a floating type")


@function(method=False)
def poisson(x: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of events where x says how many are expected, of x's type. Waits for the device.

    Raises DTypeError for what is not floating, ValueError for a rate below 0.
    """
    _require_float("poisson", "input", x)
    if x.is_meta:
        return Drawn.apply(new_tensor(empty_like(x._array)), x)
    rate = to_host(x._array).astype(np.float64).reshape(-1)
    # not >=, so that NaN is refused too.
    if not (rate >= 0).all():
        raise ArgumentError(f"poisson: the rates must be 0 or more; the least is {rate.min()}")
    drawn = np.empty(rate.size, x._array.dtype)
    for first in range(0, rate.size, CHUNK):
        drawn[first : first + CHUNK] = _draw_poisson(rate[first : first + CHUNK], generator)
    drawn = drawn.reshape(x._array.shape)
    return Drawn.apply(new_tensor(from_host(drawn, x.device)), x)


@function(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes among `count` trials of probability `prob` each, which broadcast, of their type. Waits for the device.

    Raises DTypeError for types that are not floating or two of them, ValueError for counts below 0 and what is no probability.
    """
    _require_float("binomial", "count", count)
    if prob.dtype is not count.dtype:
        raise DTypeError(f"binomial: count is {count.dtype.name}, prob {prob.dtype.name}; cast one so that both are the same")
    shape = broadcast("binomial", tuple(count._array.shape), tuple(prob._array.shape), labels=("count", "prob"))
    if count.is_meta:
        return Drawn.apply(new_tensor(empty(shape, count._array.dtype, count.device)), count, prob)
    n, p = (np.broadcast_to(to_host(y._array).astype(np.float64), shape).reshape(-1) for y in (count, prob))
    if not ((n >= 0).all() and ((p >= 0) & (p <= 1)).all()):
        raise ArgumentError("binomial: counts must be 0 or more, probabilities between 0 and 1")
    drawn = np.empty(n.size, count._array.dtype)
    for first in range(0, n.size, CHUNK):
        part = slice(first, first + CHUNK)
        drawn[part] = _draw_binomial(np.floor(n[part]), p[part], generator)
    drawn = drawn.reshape(shape)
    return Drawn.apply(new_tensor(from_host(drawn, count.device)), count, prob)


def draw_cauchy(shape: tuple[int, ...], kind: np.dtype, on: device, generator: Generator | None) -> Tensor:
    """Standard Cauchy numbers tan(pi t), t of (-1/2, 1/2); beyond 1/4 as the cotangent of what is left to 1/2, which is exact."""
    u = draw_uniform(shape, kind, on, generator)
    t = ops.add(ops.sub(u, 0.5), 2.0**-54 if kind == np.float64 else 2.0**-25)  # the middle of u's cell: no number of them is 0 or 1/2
    # Near 1/2 the tangent loses all digits of t's distance from the pole; the cotangent of that distance keeps them.
    far = ops.gt(ops.abs(t), 0.25)
    tangent = ops.tan(ops.mul(ops.where(far, ops.sub(0.5, ops.abs(t)), t), math.pi))
    return ops.where(far, ops.div(ops.sign(t), tangent), tangent)


@function(free=False)
def cauchy_(x: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with Cauchy numbers: median + sigma tan(pi (u - 1/2)). Raises ValueError for a sigma that is not positive."""
    _require_float("cauchy_", "x", x)
    if not sigma > 0:
        raise ArgumentError(f"cauchy_: sigma is {sigma}; it must be above 0")
    with no_grad():
        drawn = draw_cauchy(tuple(x._array.shape), compute_type(x._array.dtype), x.device, generator)
        values = ops.add(ops.mul(drawn, float(sigma)), float(median))
        return overwrite(x, to_dtype(values, x._array.dtype), "cauchy_")


@function(free=False)
def log_normal_(x: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with exp(mean + std z), z normal. Raises ValueError for a std that is not positive."""
    _require_float("log_normal_", "x", x)
    if not std > 0:
        raise ArgumentError(f"log_normal_: std is {std}; it must be above 0")
    z = draw_normal(tuple(x._array.shape), compute_type(x._array.dtype), x.device, generator, float(mean), float(std))
    with no_grad():
        return overwrite(x, to_positive_dtype(ops.exp(z), x._array.dtype), "log_normal_")


@function(free=False)
def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with numbers of trials until the first success of probability p: ceil(log(u) / log(1 - p)), 1 at least.

    Raises ValueError for a p that is not between 0 and 1.
    """
    # Counts of trials are whole: integer tensors can hold them, unlike the other distributions'.
    if x.dtype.kind not in ("float", "int", "uint"):
        raise DTypeError(f"geometric_: {x.dtype.name} cannot hold such numbers; use a floating or integer type")
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p is {p}; it must be above 0 and below 1")
    kind = np.dtype(np.float64)  # float32 has too few numbers near 1, of which small p make many trials
    with no_grad():
        u = draw_uniform(tuple(x._array.shape), kind, x.device, generator)
        trials = ops.ceil(ops.mul(ops.log(ops.sub(1.0, u)), 1 / math.log1p(-p)))
        return overwrite(x, ops.cast(ops.clamp(trials, 1.0, None), dtype=x._array.dtype), "geometric_")
