"""An LSTM written out by hand: 20 steps of chunk, sigmoid and tanh, backward, gradients clipped, SGD."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class LSTM(nn.Module):
    def __init__(self, inputs, width, classes, draw):
        super().__init__()
        self.inward, self.onward = nn.Linear(inputs, 4 * width), nn.Linear(width, 4 * width)
        self.head = nn.Linear(width, classes)
        self.width = width
        for p in self.parameters():
            p.data = torch.from_numpy(draw.uniform(-0.2, 0.2, p.shape).astype(np.float32))

    def forward(self, xs):
        h = torch.zeros(xs.shape[1], self.width)
        c = torch.zeros(xs.shape[1], self.width)
        for x in xs:
            i, f, g, o = (self.inward(x) + self.onward(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    model = LSTM(8, 32, 5, draw)
    xs = torch.from_numpy(draw.standard_normal((20, 8, 8)).astype(np.float32))
    labels = torch.from_numpy(draw.integers(0, 5, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step
