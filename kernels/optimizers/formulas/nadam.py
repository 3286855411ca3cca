"""Steps of NAdam: Adam with Nesterov's momentum (Dozat 2016)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# to float32's 24 bits, by Veltkamp's splitting: the product of all mu so far is kept in float32, as in PyTorch
@triton.jit
def _single(x):
    far = x * 536870913.0
    return far - (far - x)


# p -= (lr (1 - mu_t) / (1 - prod mu)) g / d + (lr mu_(t+1) / (1 - mu_(t+1) prod mu)) m / d with d = sqrt(v / (1 - b2^t)) + eps
@triton.jit
def _nadam(p, g, m, v, rate_g, rate_m, correction, one_beta1, beta2, one_beta2, eps):
    m = m + (g - m) * one_beta1
    v = v * beta2 + (g * g) * one_beta2
    size = maths.sqrt(maths.div(v, correction)) + eps
    return p - maths.div(g, size) * rate_g - maths.div(m, size) * rate_m, m, v


# mu_t = b1 (1 - 0.96^(t momentum_decay) / 2)
@triton.jit
def _numbers(t, mu_product, lr, beta1, beta2, eps, momentum_decay):
    base = t * 0.0 + 0.96
    mu = beta1 * (1.0 - 0.5 * maths.pow(base, t * momentum_decay))
    mu_next = beta1 * (1.0 - 0.5 * maths.pow(base, (t + 1.0) * momentum_decay))
    mu_product = _single(mu_product * _single(mu))
    rate_g = lr * (1.0 - mu) / (1.0 - mu_product)
    rate_m = lr * mu_next / (1.0 - mu_product * mu_next)
    return mu_product, rate_g, rate_m, 1.0 - maths.pow(beta2, t), 1.0 - beta1, beta2, 1.0 - beta2, eps


NADAM = step_formula(
    "nadam", _nadam, _numbers, states=("exp_avg", "exp_avg_sq"), scalars=("step", "mu_product"),
    settings=("lr", "beta1", "beta2", "eps", "momentum_decay"), example=(0.01, 0.9, 0.99, 1e-8, 4e-3),
    doc="One step of NAdam on p and its moments, in place.",
)  # fmt: skip
