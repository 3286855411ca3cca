"""Losses that are negative log-likelihoods or divergences of single elements: binary cross-entropy, Kullback and Leibler's, Poisson's, soft margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ArgumentError
from tritensor.ground.strides import BACKWARDS
from tritensor.kernels.losses.pointwise_loss import pointwise_loss
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.indices.error_reports import spot
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import ops


# -(t log x + (1 - t) log(1 - x)), both logarithms held above -100; no number where t is no probability
@triton.jit
def _bce(x, t):
    miss = maths.maximum(maths.log1p(-x), maths.zeros(x) - 100.0)
    hit = maths.maximum(maths.log(x), maths.zeros(x) - 100.0)
    return maths.where(t * (1.0 - t) < 0, float("nan"), (t - 1.0) * miss - t * hit)


@triton.jit
def _bce_slope(g, x, t):
    return g * maths.div(x - t, maths.maximum((1.0 - x) * x, maths.zeros(x) + 1e-12))


_LEAST = 1e-12  # what (1 - x) x is held above


def _bce_rule(g: Any, x: Any, t: Any) -> Any:
    """The slope by x with PyTorch's derivative, ((1 - t) x^2 + t (1 - x)^2) / max((1 - x) x, least)^2: where x is a certain t that is 0, as the slope is there.

    Its value is the slope's own, its derivatives are those of (1 - t) / (1 - x) - t / x, in which nothing cancels, and of a cubic where (1 - x) x is held.
    """
    if x._array.dtype.itemsize < 4:  # which has no number as small as the least
        wide = np.dtype(np.float32)
        return ops.cast(_bce_rule(ops.cast(g, dtype=wide), ops.cast(x, dtype=wide), ops.cast(t, dtype=wide)), dtype=x._array.dtype)
    y, fixed = 1.0 - x, t.detach()
    spread = (y * x).detach()
    value = ops.div(x - t, ops.maximum(spread, _LEAST)).detach()
    held = ops.lt(spread, _LEAST)
    inside = ops.where(held, 0.5, x)
    apart = ops.div(1.0 - t, 1.0 - inside) - ops.div(t, inside)
    near = ((1.0 - fixed) * (x * x * x) - fixed * (y * y * y)) * (1.0 / (3.0 * _LEAST**2)) - t * (1.0 / _LEAST)
    smooth = ops.where(held, near, apart)
    return g * (value + (smooth - smooth.detach()))


@triton.jit
def _bce_slope_t(g, x, t):
    return g * (maths.log1p(-x) - maths.log(x))


# (1 - t) x + log(1 + e^-x), in the form that does not overflow; the slope is sigmoid(x) - t
@triton.jit
def _logits(x, t):
    return maths.maximum(-x, maths.zeros(x)) + (1.0 - t) * x + maths.log1p(maths.exp(-maths.abs(x)))


@triton.jit
def _logits_slope(g, x, t):
    return g * (maths.sigmoid(x) - t)


@triton.jit
def _logits_slope_t(g, x, t):
    return -(g * x)


# t (log t - x), x a log-probability; 0 log 0 is 0
@triton.jit
def _divergence(x, t):
    return maths.where(t == 0, maths.zeros(t), t * maths.log(t)) - t * x


@triton.jit
def _divergence_slope(g, x, t):
    return -(g * t)


@triton.jit
def _divergence_slope_t(g, x, t):
    return g * (maths.where(t == 0, maths.zeros(t), maths.log(t) + 1.0) - x)


# e^t (t - x), both log-probabilities
@triton.jit
def _log_divergence(x, t):
    return maths.exp(t) * (t - x)


@triton.jit
def _log_divergence_slope(g, x, t):
    return -(g * maths.exp(t))


@triton.jit
def _log_divergence_slope_t(g, x, t):
    return g * (maths.exp(t) * (t - x + 1.0))


# log(1 + e^(-t x))
@triton.jit
def _soft_margin(x, t):
    z = t * x
    return maths.maximum(-z, maths.zeros(z)) + maths.log1p(maths.exp(-maths.abs(z)))


@triton.jit
def _soft_margin_slope(g, x, t):
    return -(g * t) * maths.sigmoid(-(t * x))


@triton.jit
def _soft_margin_slope_t(g, x, t):
    return -(g * x) * maths.sigmoid(-(t * x))


# e^x - t x, x the logarithm of a Poisson distribution's mean
@triton.jit
def _poisson_log(x, t):
    return maths.exp(x) - t * x


@triton.jit
def _poisson_log_slope(g, x, t):
    return g * (maths.exp(x) - t)


# x - t log(x + eps), x a Poisson distribution's mean
@triton.jit
def _poisson(x, t, eps):
    return x - t * maths.log(x + eps)


@triton.jit
def _poisson_slope(g, x, t, eps):
    return g * (1.0 - maths.div(t, x + eps))


@triton.jit
def _poisson_slope_t(g, x, t, eps):
    return -(g * maths.log(x + eps))


def _check_probabilities(x: np.ndarray, target: np.ndarray) -> None:
    for name, given, mend in (
        ("input", x, "take the sigmoid first, or binary_cross_entropy_with_logits"),
        ("target", target, "targets are probabilities too: scale them, or take another loss"),
    ):
        if given.size and not (np.minimum.reduce(given, axis=None) >= 0 and np.maximum.reduce(given, axis=None) <= 1):
            at = int(np.flatnonzero(~((given >= 0) & (given <= 1)))[0])
            raise ArgumentError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1, but {float(given.reshape(-1)[at]):g} is at position "
                f"{spot(at, given.shape)}; {mend}"
            )


_INSIDE = Domain(0.1, 0.9)
_SOME = Domain(-2.0, 2.0)
_COUNTS = Domain(0.5, 5.0)
pointwise_loss(
    "binary_cross_entropy", _bce, (_bce_slope, _bce_slope_t),
    lambda x, t: -t * np.maximum(np.log(x), -100) - (1 - t) * np.maximum(np.log1p(-x), -100), domain=(_INSIDE, _INSIDE),
    check=_check_probabilities, rule=_bce_rule,
    doc="-(t log x + (1 - t) log(1 - x)), logarithms held above -100. On the CPU x or t outside [0, 1] is refused; on a GPU, where to look would be to "
    "wait, it gives NaN.",
)  # fmt: skip
pointwise_loss(
    "bce_with_logits", _logits, (_logits_slope, _logits_slope_t), lambda x, t: (1 - t) * x + np.logaddexp(0, -x), domain=(_SOME, _INSIDE),
    layout=BACKWARDS, doc="binary_cross_entropy of sigmoid(x), without overflow.",
)  # fmt: skip
pointwise_loss(
    "kl_div", _divergence, (_divergence_slope, _divergence_slope_t), lambda x, t: np.where(t == 0, 0, t * np.log(t)) - t * x,
    domain=(_SOME, _INSIDE), borrows=("x", "target"), layout=BACKWARDS,
    doc="t (log t - x).",
)  # fmt: skip
pointwise_loss(
    "kl_div_of_logs", _log_divergence, (_log_divergence_slope, _log_divergence_slope_t), lambda x, t: np.exp(t) * (t - x),
    domain=(_SOME, _SOME), borrows=("x", "target"),
    layout=BACKWARDS, doc="e^t (t - x).",
)  # fmt: skip
pointwise_loss(
    "soft_margin_loss", _soft_margin, (_soft_margin_slope, _soft_margin_slope_t), lambda x, t: np.logaddexp(0, -t * x), domain=(_SOME, _SOME),
    doc="log(1 + e^(-t x)).",
)  # fmt: skip
pointwise_loss(
    "poisson_nll_of_log", _poisson_log, (_poisson_log_slope, _logits_slope_t), lambda x, t: np.exp(x) - t * x, domain=(_SOME, _COUNTS),
    borrows=("x", "target"), doc="e^x - t x.",
)  # fmt: skip
pointwise_loss(
    "poisson_nll", _poisson, (_poisson_slope, _poisson_slope_t), lambda x, t, eps: x - t * np.log(x + eps), attributes={"eps": 1e-8},
    domain=(_COUNTS, _COUNTS), others=(0.5,),
    borrows=("x", "target"), doc="x - t log(x + eps).",
)  # fmt: skip
