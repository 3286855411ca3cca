"""REINFORCE with a baseline and an entropy bonus on a little corridor: Categorical(logits=...).log_prob."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

rng = np.random.RandomState(1)
LENGTH, GAMMA = 6, 0.95


class Corridor:
    def reset(self):
        self.at = 2
        return self.state()

    def state(self):
        return np.eye(LENGTH, dtype=np.float32)[self.at]

    def step(self, action):
        self.at = max(0, min(LENGTH - 1, self.at + (1 if action == 1 else -1 if action == 0 else 0)))
        done = self.at == LENGTH - 1
        return self.state(), 1.0 if done else -0.05, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(LENGTH, 16)
        self.affine2 = nn.Linear(16, 3)

    def forward(self, x):
        return Categorical(logits=self.affine2(F.relu(self.affine1(x))))


policy = Policy()
for p in policy.parameters():
    p.data = torch.from_numpy((0.3 * rng.randn(*p.shape)).astype(np.float32))
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env, running = Corridor(), 0.0
for episode in range(60):
    state, log_probs, rewards, entropies = env.reset(), [], [], []
    for _ in range(25):
        m = policy(torch.from_numpy(state).float().unsqueeze(0))
        # the choice is numpy's, so that every library sees the same episodes
        action = torch.tensor([int((m.probs.detach().numpy().cumsum() < rng.rand()).sum().clip(0, 2))])
        log_probs.append(m.log_prob(action))
        entropies.append(m.entropy())
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    R, returns = 0.0, []
    for r in rewards[::-1]:
        R = r + GAMMA * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    running = 0.9 * running + 0.1 * returns[0].item()
    advantages = returns - running
    loss = torch.cat([-lp * a for lp, a in zip(log_probs, advantages)]).sum() - 0.01 * torch.cat(entropies).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 10 == 9:
        print(f"Episode {episode}\tsteps {len(rewards)}\tloss {loss.item():.3f}\trunning return {running:.3f}")
with torch.no_grad():
    m = policy(torch.eye(LENGTH))
    print(m, m.batch_shape, m.param_shape)
    print("going right:", (m.probs.argmax(-1)[:-1] == 1).tolist(), m.mode.shape)
    counts = torch.zeros(3)
    for a in m.sample((2000,))[:, 2]:
        counts[a] += 1
    print("sampled as often as expected:", bool(((counts / 2000 - m.probs[2]).abs() < 0.06).all()))
    print([round(v, 2) for v in m.entropy().tolist()])
