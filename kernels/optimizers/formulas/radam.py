"""Steps of RAdam: Adam whose variance is rectified while few gradients have been seen (Liu et al. 2020)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# p -= lr m / (1 - b1^t) (sqrt(1 - b2^t) / (sqrt(v) + eps)) rect, without the last two where the variance is not known yet (rect is 0)
@triton.jit
def _radam(p, g, m, v, lr, correction, root, rect, one_beta1, beta2, one_beta2, eps):
    m = m + (g - m) * one_beta1
    v = v * beta2 + (g * g) * one_beta2
    update = maths.div(m, correction) * lr
    scaled = update * maths.div(root, maths.sqrt(v) + eps) * rect
    return p - maths.where(rect > 0.0, scaled, update), m, v


# rho_inf = 2 / (1 - b2) - 1, rho = rho_inf - 2 t b2^t / (1 - b2^t); rect of rho > 5
@triton.jit
def _numbers(t, lr, beta1, beta2, eps):
    power = maths.pow(beta2, t)
    correction = 1.0 - power
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * t * power / correction
    square = (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length)
    rect = maths.where(length > 5.0, maths.sqrt(maths.abs(square)), length * 0.0)
    return lr, 1.0 - maths.pow(beta1, t), maths.sqrt(correction), rect, 1.0 - beta1, beta2, 1.0 - beta2, eps


RADAM = step_formula(
    "radam", _radam, _numbers, states=("exp_avg", "exp_avg_sq"), settings=("lr", "beta1", "beta2", "eps"), example=(0.01, 0.9, 0.999, 1e-8),
    doc="One step of RAdam on p and its moments, in place.",
)  # fmt: skip
