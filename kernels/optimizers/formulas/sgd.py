"""Steps of SGD: down the gradient, plainly or with momentum (Sutskever et al. 2013, in PyTorch's form)."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.optimizers.steps import step_formula


# p -= lr g
@triton.jit
def _sgd(p, g, lr):
    return (p - g * lr,)


@triton.jit
def _sgd_numbers(t, lr):
    return (lr,)


# buf = momentum buf + (1 - dampening) g, at first g; p -= lr buf, with nesterov lr (g + momentum buf)
@triton.jit
def _momentum(p, g, buf, lr, momentum, keep, NESTEROV: tl.constexpr, FIRST: tl.constexpr):
    if FIRST:
        buf = g
    else:
        buf = buf * momentum + g * keep
    if NESTEROV:
        return p - (g + buf * momentum) * lr, buf
    else:
        return p - buf * lr, buf


@triton.jit
def _momentum_numbers(t, lr, momentum, dampening):
    return lr, momentum, 1.0 - dampening


SGD = step_formula("sgd", _sgd, _sgd_numbers, scalars=(), example=(0.1,), doc="One step of stochastic gradient descent on p, in place.")
MOMENTUM = step_formula(
    "momentum", _momentum, _momentum_numbers, states=("momentum_buffer",), scalars=(), settings=("lr", "momentum", "dampening"), flags=("nesterov", "first"),
    example=(0.1, 0.9, 0.3), flagged=({}, {"nesterov": True}, {"first": True}),
    doc="One step of stochastic gradient descent with momentum on p and its buffer, in place; `first` where there is no buffer yet.",
)  # fmt: skip
