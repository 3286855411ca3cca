"""A linear-chain CRF: the forward algorithm tag by tag, as PyTorch's own tutorial has it, and backward through it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

TAGS, LENGTH = 5, 11


def log_sum_exp(row):
    most = row.max()
    return most + torch.log(torch.sum(torch.exp(row - most)))


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    scores = torch.from_numpy(draw.standard_normal((LENGTH, TAGS)).astype(np.float32)).requires_grad_()
    moves = torch.from_numpy(draw.standard_normal((TAGS, TAGS)).astype(np.float32)).requires_grad_()
    tags = draw.integers(0, TAGS, LENGTH).tolist()
    optimizer = torch.optim.SGD([scores, moves], lr=1e-3)

    def likelihood():
        forward = scores[0]
        for now in scores[1:]:
            cells = []
            for tag in range(TAGS):
                emitted = now[tag].view(1).expand(TAGS)
                cells.append(log_sum_exp(forward + moves[tag] + emitted).view(1))
            forward = torch.cat(cells)
        gold = scores[0, tags[0]]
        for k in range(1, LENGTH):
            gold = gold + moves[tags[k], tags[k - 1]] + scores[k, tags[k]]
        return log_sum_exp(forward) - gold

    def step() -> float:
        optimizer.zero_grad()
        loss = likelihood()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
