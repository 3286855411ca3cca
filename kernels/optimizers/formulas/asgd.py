"""Steps of ASGD: descent whose parameters are averaged along the way (Polyak and Juditsky 1992)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# p = (1 - lambd eta) p - eta g; ax = ax + mu (p - ax), at first p
@triton.jit
def _asgd(p, g, ax, shrink, eta, mu):
    p = p * shrink - g * eta
    return p, maths.where(mu == 1.0, p, ax + (p - ax) * mu)


# those of the next step: eta = lr / (1 + lambd lr t)^alpha, mu = 1 / max(1, t - t0)
@triton.jit
def _numbers(t, eta, mu, lr, lambd, alpha, t0):
    later = lr / maths.pow(1.0 + lambd * lr * t, alpha)
    return later, 1.0 / maths.maximum(t - t0, t * 0.0 + 1.0), 1.0 - lambd * eta, eta, mu


ASGD = step_formula(
    "asgd", _asgd, _numbers, states=("ax",), scalars=("step", "eta", "mu"), settings=("lr", "lambd", "alpha", "t0"), example=(0.01, 0.1, 0.75, 1.0),
    doc="One step of averaged SGD on p and its average, in place.",
)  # fmt: skip
