"""The logarithm of the gamma function, its derivatives, the Hurwitz zeta function."""

from __future__ import annotations

import math

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked_together
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.pointwise_samples import Domain, few
from tritensor.kernels.parts.special import gamma as special
from tritensor.ops.table import Sample

_POSITIVE = Domain(0.3, 9.0)


# d log|gamma(x)| / dx = digamma(x)
@triton.jit
def _lgamma_grad(g, x):
    return maths.chain(g, special.digamma(x))


@triton.jit
def _digamma_grad(g, x):
    return maths.chain(g, special.trigamma(x))


# the polygamma functions are zeta's: psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x), DLMF 25.11.12
@triton.jit
def _trigamma_grad(g, x):
    return maths.chain(g, -2.0 * special.zeta(3.0 * maths.ones(x), x))


# d zeta(s, q) / dq = -s zeta(s + 1, q); by s there is no gradient, as in PyTorch
@triton.jit
def _zeta_q(g, s, q):
    return -s * g * special.zeta(s + 1.0, q)


def _lgamma(x: float) -> float:
    return math.lgamma(x) if x > 0 or x % 1 != 0 else math.inf


# DLMF 5.11.2 and its derivative, 5.15.8, thirty steps to the right (5.5.2, 5.15.5), where their terms are beyond the last digit
def digamma_reference(x: np.ndarray) -> np.ndarray:
    """The derivative of log|gamma(x)|."""
    z, w = x + 30, 1 / (x + 30) ** 2
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))
    y = np.log(z) - 0.5 / z - series - 1 / x - sum(1 / (x + k) for k in range(1, 30))
    return np.where((x < 0) & (x == np.rint(x)), np.nan, y)


def _trigamma_reference(x: np.ndarray) -> np.ndarray:
    z, w = x + 30, 1 / (x + 30) ** 2
    y = (1 + 0.5 / z + w * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w / 30)))) / z + sum(1 / (x + k) ** 2 for k in range(30))
    return np.where(x == -np.inf, np.nan, y)


def _zeta_reference(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum of (q + k)^-s over k = 0, 1, ...: thirty terms, and the rest by Euler and Maclaurin, DLMF 25.11.5."""
    z = q + 30.0
    rest = (
        z / (s - 1) + 0.5 + s / (12 * z) - s * (s + 1) * (s + 2) / (720 * z**3) + s * (s + 1) * (s + 2) * (s + 3) * (s + 4) / (30240 * z**5)
    )
    y = sum(np.power(q + k, -s) for k in range(30)) + z**-s * rest
    return np.where(s == 1, np.inf, np.where(s < 1, np.nan, y))


_zeta_numpy = backends.in_numpy(special.zeta)


def _zeta_block(s: np.ndarray, q: np.ndarray, out: np.ndarray) -> None:
    """Its dozen passes over memory stay in a cache: of many elements that halves the time."""
    np.copyto(out, _zeta_numpy(s, q))


def _left(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.integers(-5, 0, (6,)) + rng.uniform(0.2, 0.8, (6,))), Sample(rng.uniform(3.6, 30.0, (5,)))]


def _negative(rng: np.random.Generator) -> list[Sample]:
    s, q = np.array([2.0, 3.0, 2.0, 2.5, 0.5, 1.0, 40.0, 3.0]), np.array([-0.5, -7.3, -2.0, -0.5, 2.0, 2.0, 0.5, 1e4])
    return [Sample(s, q, smooth=False)]


_TYPES = ("float32", "float64")
for _name, _formula, _gradient, _reference in (
    ("lgamma", special.lgamma, _lgamma_grad, np.vectorize(_lgamma, otypes=[np.float64])),
    ("digamma", special.digamma, _digamma_grad, digamma_reference), ("trigamma", special.trigamma, _trigamma_grad, _trigamma_reference),
):  # fmt: skip
    elementwise(
        _name, _formula, _gradient, _reference, cpu=backends.in_numpy(_formula), kinds=("float",), domain=_POSITIVE, samples=few(_POSITIVE, extra=_left),
        dtypes=("float16", *_TYPES) if _name == "lgamma" else _TYPES, heavy=HEAVY | {4: 512},
        doc="The derivative of digamma, the sum of (x + k)^-2 over k = 0, 1, ..." if _name == "trigamma" else "",
    )  # fmt: skip
_ZETA = (Domain(1.5, 6.0), Domain(0.4, 9.0))
elementwise(
    "zeta", special.zeta, (None, _zeta_q), _zeta_reference, cpu=blocked_together(_zeta_block), kinds=("float",), domain=_ZETA,
    samples=few(*_ZETA, extra=_negative), dtypes=_TYPES, heavy=HEAVY | {4: 512},
)  # fmt: skip
