"""MAML on sine waves (Finn, Abbeel and Levine, 2017): inner steps with create_graph, Adam outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F


def net(x, weights):
    w1, b1, w2, b2, w3, b3 = weights
    x = F.relu(F.linear(x, w1, b1))
    x = F.relu(F.linear(x, w2, b2))
    return F.linear(x, w3, b3)


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    shapes = [(40, 1), (40,), (40, 40), (40,), (1, 40), (1,)]
    weights = [torch.from_numpy(draw.normal(0, 0.2, s).astype(np.float32)).requires_grad_() for s in shapes]
    optimizer = torch.optim.Adam(weights, lr=1e-3)

    def wave():
        height, shift = draw.uniform(0.1, 5.0), draw.uniform(0, np.pi)
        x = draw.uniform(-5, 5, (20, 1)).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy((height * np.sin(x + shift)).astype(np.float32))

    def step() -> float:
        optimizer.zero_grad()
        total = 0.0
        for _ in range(4):
            x, y = wave()
            fast = weights
            for _ in range(2):
                loss = F.mse_loss(net(x[:10], fast), y[:10])
                found = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [w - 0.01 * g for w, g in zip(fast, found, strict=True)]
            total = total + F.mse_loss(net(x[10:], fast), y[10:])
        (total / 4).backward()
        optimizer.step()
        return total.item()

    return step
