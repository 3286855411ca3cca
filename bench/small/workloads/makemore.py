"""A character model as in makemore: C[X], a hidden layer by hand, cross_entropy, steps that write `.data`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

LETTERS, BACK, WIDTH = 27, 3, 10


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    X = torch.from_numpy(draw.integers(0, LETTERS, (500, BACK)))
    Y = torch.from_numpy(draw.integers(0, LETTERS, 500))

    def normal(*shape):
        return torch.from_numpy((draw.standard_normal(shape) * 0.3).astype(np.float32))

    C, W1, b1, W2, b2 = normal(LETTERS, WIDTH), normal(BACK * WIDTH, 64), normal(64), normal(64, LETTERS), normal(LETTERS)
    parameters = [C, W1, b1, W2, b2]
    for p in parameters:
        p.requires_grad = True

    def step() -> float:
        total = 0.0
        for _ in range(8):
            ix = torch.from_numpy(draw.integers(0, len(X), 32))
            emb = C[X[ix]]
            h = torch.tanh(emb.view(emb.shape[0], -1) @ W1 + b1)
            logits = h @ W2 + b2
            loss = F.cross_entropy(logits, Y[ix])
            for p in parameters:
                p.grad = None
            loss.backward()
            for p in parameters:
                p.data += -0.01 * p.grad
            total += loss.item()
        return total

    return step
