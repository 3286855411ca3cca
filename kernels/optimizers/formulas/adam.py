"""Steps of Adam, AdamW (by its weight decay) and AMSGrad: scaled by running moments of the gradient (Kingma and Ba 2015; Reddi et al. 2018)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# m = m + (1 - b1) (g - m); v = b2 v + (1 - b2) g^2; p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
@triton.jit
def _adam(p, g, m, v, rate, root, one_beta1, beta2, one_beta2, eps):
    m = m + (g - m) * one_beta1
    v = v * beta2 + (g * g) * one_beta2
    return p - maths.div(m, maths.div(maths.sqrt(v), root) + eps) * rate, m, v


# the same over the largest v so far
@triton.jit
def _amsgrad(p, g, m, v, largest, rate, root, one_beta1, beta2, one_beta2, eps):
    m = m + (g - m) * one_beta1
    v = v * beta2 + (g * g) * one_beta2
    largest = maths.maximum(largest, v)
    return p - maths.div(m, maths.div(maths.sqrt(largest), root) + eps) * rate, m, v, largest


@triton.jit
def _numbers(t, lr, beta1, beta2, eps):
    return lr / (1.0 - maths.pow(beta1, t)), maths.sqrt(1.0 - maths.pow(beta2, t)), 1.0 - beta1, beta2, 1.0 - beta2, eps


_SETTINGS, _EXAMPLE = ("lr", "beta1", "beta2", "eps"), (0.01, 0.9, 0.99, 1e-8)
ADAM = step_formula(
    "adam", _adam, _numbers, states=("exp_avg", "exp_avg_sq"), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of Adam on p and its moments, in place.",
)  # fmt: skip
AMSGRAD = step_formula(
    "amsgrad", _amsgrad, _numbers, states=("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), settings=_SETTINGS, example=_EXAMPLE,
    doc="One step of AMSGrad on p, its moments and the largest second moment so far, in place.",
)  # fmt: skip
