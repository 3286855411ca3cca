"""A Kalman filter of 4 states learnt by its likelihood: solve and logdet at every observation, backward through all of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

DT = 0.1


def build() -> Callable[[], float]:
    draw = np.random.default_rng(0)
    motion = torch.eye(4) + DT * torch.diag(torch.ones(2), 2)
    seen = torch.eye(4)[:2]
    track = np.cumsum(np.cumsum(draw.normal(0, 0.1, (20, 2)), 0), 0) + draw.normal(0, 0.3, (20, 2))
    observations = torch.from_numpy(track.astype(np.float32))
    log_process, log_noise = torch.full((4,), -2.0, requires_grad=True), torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([log_process, log_noise], lr=1e-3)

    def step() -> float:
        process, noise = torch.diag(log_process.exp()), torch.diag(log_noise.exp())
        mean, spread, loss = torch.zeros(4), torch.eye(4), torch.zeros(())
        for observation in observations:
            mean = motion @ mean
            spread = motion @ spread @ motion.T + process
            innovation = observation - seen @ mean
            expected = seen @ spread @ seen.T + noise
            gain = torch.linalg.solve(expected, seen @ spread).T
            mean = mean + gain @ innovation
            spread = (torch.eye(4) - gain @ seen) @ spread
            distance = innovation @ torch.linalg.solve(expected, innovation)
            loss = loss + 0.5 * (distance + torch.logdet(expected) + 2 * math.log(2 * math.pi))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
