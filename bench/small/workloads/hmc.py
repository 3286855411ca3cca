"""Hamiltonian Monte Carlo: leapfrog steps with autograd.grad of the log density of a Bayesian logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

LEAPS, STEP = 10, 0.05


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    xs = torch.from_numpy(draw.standard_normal((20, 3)).astype(np.float32))
    ys = (xs @ torch.tensor([1.0, -2.0, 0.5]) > 0).float()
    position = torch.zeros(3)

    def energy(q):
        return F.softplus(xs @ q).sum() - (ys * (xs @ q)).sum() + 0.5 * (q**2).sum()

    def slope(q):
        q = q.detach().requires_grad_()
        (found,) = torch.autograd.grad(energy(q), q)
        return found

    def sample(q):
        """The next position of the chain."""
        start = p = torch.from_numpy(draw.standard_normal(3).astype(np.float32))
        new = q
        p = p - 0.5 * STEP * slope(new)
        for leap in range(LEAPS):
            new = new + STEP * p
            p = p - (1.0 if leap < LEAPS - 1 else 0.5) * STEP * slope(new)
        with torch.no_grad():
            gained = energy(q) + 0.5 * start.dot(start) - energy(new) - 0.5 * p.dot(p)
        return new if math.log(draw.random()) < gained.item() else q

    def step() -> float:
        nonlocal position
        total = torch.zeros(3)
        for _ in range(3):
            position = sample(position)
            total += position
        return energy(position).item() + total.sum().item()

    return step
