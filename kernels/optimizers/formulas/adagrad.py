"""Steps of Adagrad: scaled by the sum of all squared gradients (Duchi et al. 2011)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
@triton.jit
def _adagrad(p, g, s, rate, eps):
    s = s + g * g
    return p - maths.div(g, maths.sqrt(s) + eps) * rate, s


@triton.jit
def _numbers(t, lr, lr_decay, eps):
    return lr / (1.0 + (t - 1.0) * lr_decay), eps


ADAGRAD = step_formula(
    "adagrad", _adagrad, _numbers, states=("sum",), settings=("lr", "lr_decay", "eps"), example=(0.1, 0.01, 1e-10),
    doc="One step of Adagrad on p and its sum of squares, in place.",
)  # fmt: skip
