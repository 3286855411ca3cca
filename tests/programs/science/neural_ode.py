"""A neural ordinary differential equation with the adjoint method written as an autograd.Function, beside backprop through the solver."""

import numpy as np
import torch
import torch.nn as nn


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def rk4(f, y, t0, t1, steps):
    h = (t1 - t0) / steps
    for i in range(steps):
        t = t0 + i * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h * k1 / 2)
        k3 = f(t + h / 2, y + h * k2 / 2)
        k4 = f(t + h, y + h * k3)
        y = y + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return y


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, steps, *params):
        with torch.no_grad():
            y1 = rk4(func, y0, 0.0, 1.0, steps)
        ctx.func, ctx.steps = func, steps
        ctx.save_for_backward(y1, *params)
        return y1

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        y1, *params = ctx.saved_tensors
        sizes = [p.numel() for p in params]

        def augmented(t, state):
            y, a = state[0], state[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = ctx.func(t, y)
                gy, *gp = torch.autograd.grad(f, (y, *params), a, allow_unused=True)
            flat = torch.cat([torch.zeros(n, dtype=y.dtype) if g is None else g.reshape(-1) for g, n in zip(gp, sizes)])
            return State(f.detach(), -gy, -flat)

        zero = torch.zeros(sum(sizes), dtype=y1.dtype)
        end = rk4(augmented, State(y1, grad, zero), 1.0, 0.0, ctx.steps)
        return None, end[1], None, *[g.view_as(p) for g, p in zip(end[2].split(sizes), params)]


class State(tuple):
    """Three tensors that add and scale together."""

    def __new__(cls, *parts):
        return super().__new__(cls, parts)

    def __add__(self, other):
        return State(*(a + b for a, b in zip(self, other)))

    def __rmul__(self, s):
        return State(*(s * a for a in self))

    def __mul__(self, s):
        return State(*(a * s for a in self))

    def __truediv__(self, s):
        return State(*(a / s for a in self))


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


rng = np.random.default_rng(0)
field = fill(Field().double())
y0 = torch.tensor(rng.uniform(-1, 1, (16, 2)))
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64)
wanted = rk4(lambda t, y: y**3 @ matrix, y0, 0.0, 1.0, 20)
params = tuple(field.parameters())
direct = torch.autograd.grad(rk4(field, y0, 0.0, 1.0, 20).pow(2).sum(), params)
adjoint = torch.autograd.grad(Adjoint.apply(field, y0, 20, *params).pow(2).sum(), params)
print("gradients agree:", all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(direct, adjoint)))
optimizer = torch.optim.RMSprop(params, lr=1e-2)
for step in range(10):
    optimizer.zero_grad()
    loss = (Adjoint.apply(field, y0, 8, *params) - wanted).abs().mean()
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print(f"{step} {loss.item():.5f}")
