"""Losses of the difference x - t: mean squared and absolute errors, and those that are square near 0 and straight beyond."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.losses.pointwise_loss import pointwise_loss
from tritensor.kernels.parts import maths


# (x - t)^2
@triton.jit
def _square(x, t):
    return (x - t) * (x - t)


@triton.jit
def _square_slope(g, x, t):
    return 2.0 * (x - t) * g


@triton.jit
def _square_slope_t(g, x, t):
    return 2.0 * (t - x) * g


# |x - t|
@triton.jit
def _distance(x, t):
    return maths.abs(x - t)


@triton.jit
def _distance_slope(g, x, t):
    return g * maths.sign(x - t)


@triton.jit
def _distance_slope_t(g, x, t):
    return g * maths.sign(t - x)


# d = |x - t|: d^2 / (2 beta) where d < beta, else d - beta / 2
@triton.jit
def _smooth(x, t, beta):
    d = maths.abs(x - t)
    return maths.where(d < beta, maths.div(0.5 * d * d, maths.zeros(d) + beta), d - 0.5 * beta)


# of no number the slope is d / beta, which is none either
@triton.jit
def _smooth_slope(g, x, t, beta):
    d = x - t
    return g * maths.where(maths.abs(d) >= beta, maths.sign(d), maths.div(d, maths.zeros(d) + beta))


@triton.jit
def _smooth_slope_t(g, x, t, beta):
    d = t - x
    return g * maths.where(maths.abs(d) >= beta, maths.sign(d), maths.div(d, maths.zeros(d) + beta))


# d = |x - t|: d^2 / 2 where d <= delta, else delta (d - delta / 2) (Huber, Annals of Mathematical Statistics 35, 1964)
@triton.jit
def _huber(x, t, delta):
    d = maths.abs(x - t)
    return maths.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


@triton.jit
def _huber_slope(g, x, t, delta):
    d = x - t
    return g * maths.where(maths.abs(d) > delta, delta * maths.sign(d), d)


@triton.jit
def _huber_slope_t(g, x, t, delta):
    d = t - x
    return g * maths.where(maths.abs(d) > delta, delta * maths.sign(d), d)


def _apart(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Differences on the odd multiples of 1/4, away from the bends at 0, 1/2 and 1."""
    t = 0.5 * rng.integers(-4, 5, shape)
    return t + 0.5 * rng.integers(-4, 4, shape) + 0.25, t


pointwise_loss(
    "mse_loss", _square, (_square_slope, _square_slope_t), lambda x, t: (x - t) ** 2, doc="(x - t)^2, its mean or its sum.", every_path=True,
    draw=lambda rng, shape: (rng.normal(size=shape), rng.normal(size=shape)),
)  # fmt: skip
pointwise_loss(
    "l1_loss", _distance, (_distance_slope, _distance_slope_t), lambda x, t: np.abs(x - t), doc="|x - t|, its mean or its sum.", draw=_apart,
    borrows=("x", "target"),
)  # fmt: skip


def _smooth_l1(x: np.ndarray, t: np.ndarray, beta: float) -> np.ndarray:
    d = np.abs(x - t)
    return np.where(d < beta, d * d / (2 * beta), d - beta / 2) if beta else d


def _huber_loss(x: np.ndarray, t: np.ndarray, delta: float) -> np.ndarray:
    d = np.abs(x - t)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


pointwise_loss(
    "smooth_l1_loss", _smooth, (_smooth_slope, _smooth_slope_t), _smooth_l1, attributes={"beta": 1.0}, draw=_apart, others=(0.5,), borrows=("x", "target"),
    doc="Square near 0, |x - t| - beta / 2 beyond beta.",
)  # fmt: skip
pointwise_loss(
    "huber_loss", _huber, (_huber_slope, _huber_slope_t), _huber_loss, attributes={"delta": 1.0}, draw=_apart, others=(0.5,),
    doc="Square near 0, of slope delta beyond it.",
)  # fmt: skip
