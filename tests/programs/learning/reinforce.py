"""REINFORCE on a corridor: a policy network, returns, a baseline, log-probabilities of torch.distributions."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Corridor:
    """Go right five times; every step costs."""

    def reset(self):
        self.at = 0
        return self.state()

    def state(self):
        return torch.eye(6)[self.at]

    def step(self, action):
        self.at = max(0, self.at + (1 if action == 1 else -1))
        return self.state(), 1.0 if self.at == 5 else -0.1, self.at == 5


policy = fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-2)
env, rng = Corridor(), np.random.default_rng(0)
lengths = []
for episode in range(30):
    state, log_probs, rewards, entropies = env.reset(), [], [], []
    for _ in range(30):
        pi = Categorical(logits=policy(state))
        action = torch.tensor(int(rng.uniform() < pi.probs[1].item()))
        log_probs.append(pi.log_prob(action))
        entropies.append(pi.entropy())
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.95 * g
        returns.insert(0, g)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(log_probs) * returns).sum() - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
print("shorter:", sum(lengths[-5:]) < sum(lengths[:5]), lengths[-3:])
print([round(p, 1) for p in F.softmax(policy(torch.eye(6)[:5]), dim=-1)[:, 1].tolist()])
