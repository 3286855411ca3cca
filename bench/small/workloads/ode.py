"""A neural ODE: dopri5 that chooses its own steps, and the adjoint equation in an autograd.Function (Chen et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980
NODES = [1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0]
STAGES = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
ERROR = [71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def mixed(weights, slopes):
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def dopri5(f, y, start, end, rtol=1e-3, atol=1e-4):
    """y at `end`, of y at `start` and dy/dt = f(t, y)."""
    t, h = start, (end - start) / 4
    slopes = [f(t, y)]
    while abs(end - t) > 1e-9:
        h = min(h, end - t, key=abs)
        for node, stage in zip(NODES, STAGES, strict=True):
            new = y + h * mixed(stage, slopes)
            slopes.append(f(t + node * h, new))
        allowed = atol + rtol * torch.max(y.abs(), new.abs())
        error = float((h * mixed(ERROR, slopes) / allowed).pow(2).mean().sqrt())
        if error <= 1.0:
            t, y, slopes = t + h, new, slopes[-1:]
        else:
            slopes = slopes[:1]
        h *= min(5.0, max(0.2, 0.9 / max(error, 1e-8) ** 0.2))
    return y


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, start, end, y, *weights):
        with torch.no_grad():
            y = dopri5(field, y, start, end)
        ctx.field, ctx.start, ctx.end = field, start, end
        ctx.save_for_backward(y, *weights)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, *weights = ctx.saved_tensors
        sizes = [y.numel(), y.numel(), *(w.numel() for w in weights)]

        def back(t, state):
            now, adjoint = (part.view(y.shape) for part in state[: 2 * y.numel()].split(y.numel()))
            with torch.enable_grad():
                now = now.detach().requires_grad_()
                slope = ctx.field(t, now)
                found = torch.autograd.grad(slope, (now, *weights), -adjoint)
            return torch.cat([slope.detach().flatten(), *(g.flatten() for g in found)])

        state = torch.cat([y.flatten(), gradient.flatten(), *(torch.zeros(n) for n in sizes[2:])])
        _, of_y, *of_weights = dopri5(back, state, ctx.end, ctx.start).split(sizes)
        return None, None, None, of_y.view(y.shape), *(g.view(w.shape) for g, w in zip(of_weights, weights, strict=True))


class Field(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 16), nn.Linear(16, 2)
        for p in self.parameters():
            p.data = torch.from_numpy(draw.normal(0, 0.3, p.shape).astype(np.float32))

    def forward(self, t, y):
        return self.outer(torch.tanh(self.inner(y)))


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    field = Field(draw)
    begin = torch.tensor([[2.0, 0.0]])
    wanted = torch.tensor([[0.0, 1.5]])
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad()
        end = Adjoint.apply(field, 0.0, 1.0, begin, *field.parameters())
        loss = (end - wanted).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
