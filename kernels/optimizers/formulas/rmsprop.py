"""Steps of RMSprop: scaled by a running mean of squared gradients, centred or not, with momentum or without (Hinton 2012; Graves 2013)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps)
@triton.jit
def _plain(p, g, v, lr, alpha, one_alpha, eps, momentum):
    v = v * alpha + (g * g) * one_alpha
    return p - maths.div(g, maths.sqrt(v) + eps) * lr, v


# buf = momentum buf + g / (sqrt(v) + eps); p -= lr buf
@triton.jit
def _moving(p, g, v, buf, lr, alpha, one_alpha, eps, momentum):
    v = v * alpha + (g * g) * one_alpha
    buf = buf * momentum + maths.div(g, maths.sqrt(v) + eps)
    return p - buf * lr, v, buf


# the same over sqrt(v - mean^2), mean = mean + (1 - alpha) (g - mean)
@triton.jit
def _centered(p, g, v, mean, lr, alpha, one_alpha, eps, momentum):
    v = v * alpha + (g * g) * one_alpha
    mean = mean + (g - mean) * one_alpha
    return p - maths.div(g, maths.sqrt(v - mean * mean) + eps) * lr, v, mean


@triton.jit
def _centered_moving(p, g, v, buf, mean, lr, alpha, one_alpha, eps, momentum):
    v = v * alpha + (g * g) * one_alpha
    mean = mean + (g - mean) * one_alpha
    buf = buf * momentum + maths.div(g, maths.sqrt(v - mean * mean) + eps)
    return p - buf * lr, v, buf, mean


@triton.jit
def _numbers(t, lr, alpha, eps, momentum):
    return lr, alpha, 1.0 - alpha, eps, momentum


_SETTINGS, _EXAMPLE = ("lr", "alpha", "eps", "momentum"), (0.01, 0.9, 1e-8, 0.9)
RMSPROP = step_formula(
    "rmsprop", _plain, _numbers, states=("square_avg",), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of RMSprop on p and its mean of squares, in place.",
)  # fmt: skip
MOVING = step_formula(
    "rmsprop_momentum", _moving, _numbers, states=("square_avg", "momentum_buffer"), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of RMSprop with momentum on p and its states, in place.",
)  # fmt: skip
CENTERED = step_formula(
    "rmsprop_centered", _centered, _numbers, states=("square_avg", "grad_avg"), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of centred RMSprop on p and its states, in place.",
)  # fmt: skip
CENTERED_MOVING = step_formula(
    "rmsprop_centered_momentum", _centered_moving, _numbers, states=("square_avg", "momentum_buffer", "grad_avg"), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of centred RMSprop with momentum on p and its states, in place.",
)  # fmt: skip
