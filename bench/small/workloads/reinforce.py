"""REINFORCE: an episode of a cart-pole written by hand, a Categorical policy, Adam."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

LENGTH = 50  # steps of every episode, whether the pole has fallen or not, so that each is the same work


class Policy(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 32), nn.Linear(32, 2)
        for p in self.parameters():
            p.data = torch.from_numpy(draw.normal(0, 0.3, p.shape).astype(np.float32))

    def forward(self, x):
        return F.softmax(self.out(F.relu(self.hidden(x))), dim=1)


def pushed(state, action):
    """The cart and the pole 0.02 s later (Barto, Sutton and Anderson, 1983)."""
    x, v, angle, turn = state
    force = 10.0 if action == 1 else -10.0
    sine, cosine = math.sin(angle), math.cos(angle)
    shared = (force + 0.05 * turn * turn * sine) / 1.1
    spin = (9.8 * sine - cosine * shared) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
    return [x + 0.02 * v, v + 0.02 * (shared - 0.05 * spin * cosine / 1.1), angle + 0.02 * turn, turn + 0.02 * spin]


def build(sample: Callable[[Categorical], torch.Tensor] = Categorical.sample) -> Callable[[], float]:
    """Libraries draw other numbers from a seed: who compares them gives a `sample` of his own."""
    draw = np.random.default_rng(0)
    policy = Policy(draw)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)

    def step() -> float:
        state, logs, rewards = list(draw.uniform(-0.05, 0.05, 4)), [], []
        for _ in range(LENGTH):
            chances = policy(torch.tensor(state, dtype=torch.float32).unsqueeze(0))
            m = Categorical(chances)
            action = sample(m)
            logs.append(m.log_prob(action))
            state = pushed(state, action.item())
            rewards.append(1.0 if abs(state[2]) < 0.2 else 0.0)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = torch.cat([-log * r for log, r in zip(logs, returns, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
