"""A physics-informed network solves Burgers' equation: first and second derivatives by autograd.grad in the loss, Adam, then L-BFGS."""

import math

import numpy as np
import torch
from torch import nn
from torch.autograd import grad

torch.set_default_dtype(torch.float64)


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


net = fill(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), Sine(), nn.Linear(16, 1)))
rng = np.random.default_rng(0)
inside = torch.tensor(rng.uniform([-1, 0], [1, 1], (64, 2))).requires_grad_()
start = torch.tensor(np.stack([rng.uniform(-1, 1, 32), np.zeros(32)], 1))
edge = torch.tensor(np.stack([np.where(np.arange(16) % 2, 1.0, -1.0), rng.uniform(0, 1, 16)], 1))
nu = 0.01 / math.pi


def losses():
    u = net(inside)
    du = grad(u.sum(), inside, create_graph=True)[0]
    ux, ut = du[:, :1], du[:, 1:]
    uxx = grad(ux, inside, torch.ones_like(ux), create_graph=True)[0][:, :1]
    residual = ut + u * ux - nu * uxx
    return (residual**2).mean(), ((net(start) + torch.sin(math.pi * start[:, :1])) ** 2).mean(), (net(edge) ** 2).mean()


optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
for step in range(12):
    optimizer.zero_grad()
    parts = losses()
    sum(parts).backward()
    optimizer.step()
    scheduler.step()
    if step % 4 == 0:
        print(f"{step} " + " ".join(f"{p.item():.5f}" for p in parts))
polish = torch.optim.LBFGS(net.parameters(), lr=1, max_iter=8, tolerance_grad=1e-9, line_search_fn="strong_wolfe")


def closure():
    polish.zero_grad()
    total = sum(losses())
    total.backward()
    return total


before = polish.step(closure).item()
after = sum(losses()).item()
print(f"{before:.5f} -> {after:.5f}", net[0].weight.dtype)
torch.set_default_dtype(torch.float32)
