"""PPO: an actor and a critic with a shared body, generalised advantage estimates, the clipped objective, minibatches, Gaussian actions."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.normal import Normal


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.mu, self.value = nn.Linear(32, 1), nn.Linear(32, 1)
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mu(h), self.log_std.exp().expand(x.shape[0], 1)), self.value(h).squeeze(-1)


rng = np.random.default_rng(0)
net = fill(ActorCritic())
net.log_std.data.fill_(-0.5)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-5)
for update in range(4):
    states, actions, rewards, values, logs = [], [], [], [], []
    s = rng.standard_normal(3)
    with torch.no_grad():
        for _ in range(64):
            x = torch.tensor(s, dtype=torch.float32)[None]
            pi, v = net(x)
            a = pi.mean + pi.stddev * float(rng.standard_normal())
            states.append(x)
            actions.append(a)
            values.append(v)
            logs.append(pi.log_prob(a).sum(-1))
            rewards.append(-float((a.item() - s[0]) ** 2))
            s = rng.standard_normal(3)
        states, actions, values, logs = (torch.cat(t) for t in (states, actions, values, logs))
        rewards = torch.tensor(rewards)
        advantages, last = torch.zeros_like(rewards), 0.0
        for t in reversed(range(64)):
            following = values[t + 1] if t < 63 else 0.0
            last = rewards[t] + 0.5 * following - values[t] + 0.5 * 0.9 * last
            advantages[t] = last
        returns = advantages + values
    for epoch in range(3):
        for part in torch.as_tensor(rng.permutation(64)).split(32):
            pi, v = net(states[part])
            ratio = (pi.log_prob(actions[part]).sum(-1) - logs[part]).exp()
            adv = advantages[part]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy_loss = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
            loss = policy_loss + 0.5 * (v - returns[part]).pow(2).mean() - 0.01 * pi.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    print(f"update {update} reward {rewards.mean().item():.3f} loss {loss.item():.3f} std {net.log_std.exp().item():.3f}")
