"""Steps of Adadelta: scaled by running means of squared gradients and squared steps (Zeiler 2012)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# v = rho v + (1 - rho) g^2; d = sqrt(a + eps) / sqrt(v + eps) g; a = rho a + (1 - rho) d^2; p -= lr d
@triton.jit
def _adadelta(p, g, v, a, lr, rho, one_rho, eps):
    v = v * rho + (g * g) * one_rho
    d = maths.div(maths.sqrt(a + eps), maths.sqrt(v + eps)) * g
    a = a * rho + (d * d) * one_rho
    return p - d * lr, v, a


@triton.jit
def _numbers(t, lr, rho, eps):
    return lr, rho, 1.0 - rho, eps


ADADELTA = step_formula(
    "adadelta", _adadelta, _numbers, states=("square_avg", "acc_delta"), settings=("lr", "rho", "eps"), example=(1.0, 0.9, 1e-3),
    doc="One step of Adadelta on p and its two means, in place.",
)  # fmt: skip
