"""Steps of Adamax: Adam over the largest gradient so far, decayed (Kingma and Ba 2015, section 7)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# m = m + (1 - b1) (g - m); u = max(b2 u, |g| + eps); p -= lr / (1 - b1^t) m / u
@triton.jit
def _adamax(p, g, m, u, rate, one_beta1, beta2, eps):
    m = m + (g - m) * one_beta1
    u = maths.maximum(u * beta2, maths.abs(g) + eps)
    return p - maths.div(m, u) * rate, m, u


@triton.jit
def _numbers(t, lr, beta1, beta2, eps):
    return lr / (1.0 - maths.pow(beta1, t)), 1.0 - beta1, beta2, eps


ADAMAX = step_formula(
    "adamax", _adamax, _numbers, states=("exp_avg", "exp_inf"), settings=("lr", "beta1", "beta2", "eps"), example=(0.01, 0.9, 0.99, 1e-8),
    doc="One step of Adamax on p, its momentum and its norm, in place.",
)  # fmt: skip
