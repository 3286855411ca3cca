"""Steps of Lion: the sign of a momentum (Chen et al. 2023)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# p -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g
@triton.jit
def _lion(p, g, m, lr, beta1, one_beta1, beta2, one_beta2):
    return p - maths.sign(m * beta1 + g * one_beta1) * lr, m * beta2 + g * one_beta2


@triton.jit
def _numbers(t, lr, beta1, beta2):
    return lr, beta1, 1.0 - beta1, beta2, 1.0 - beta2


LION = step_formula(
    "lion", _lion, _numbers, states=("exp_avg",), scalars=(), settings=("lr", "beta1", "beta2"), example=(0.01, 0.9, 0.99),
    doc="One step of Lion on p and its momentum, in place.",
)  # fmt: skip
