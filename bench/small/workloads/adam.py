"""An MLP trained one sample at a time with Adam: 32 samples a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    for p in model.parameters():
        p.data = torch.from_numpy(draw.normal(0, 0.3, p.shape).astype(np.float32))
    xs = torch.from_numpy(draw.standard_normal((32, 10)).astype(np.float32))
    ys = torch.sin(xs.sum(1, keepdim=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lost = nn.MSELoss()

    def step() -> float:
        total = 0.0
        for k in range(len(xs)):
            optimizer.zero_grad()
            loss = lost(model(xs[k : k + 1]), ys[k : k + 1])
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return step
