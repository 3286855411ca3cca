"""Soft actor-critic's updates: a squashed Gaussian by TransformedDistribution, twin critics, Polyak averages, a learned temperature."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributions as pyd


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, noise):
        mu, log_std = self.trunk(x).chunk(2, dim=-1)
        std = (-4 + 2.5 * (torch.tanh(log_std) + 1)).exp()
        dist = pyd.TransformedDistribution(pyd.Normal(mu, std), [pyd.TanhTransform(cache_size=1)])
        action = torch.tanh(mu + std * noise)
        return action, dist.log_prob(action.clamp(-0.999, 0.999)).sum(-1, keepdim=True)


actor, critics = fill(Actor()), nn.ModuleList(fill(nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1)), i) for i in (1, 2))
targets = copy.deepcopy(critics).requires_grad_(False)
log_alpha = torch.tensor(np.log(0.1), dtype=torch.float32, requires_grad=True)
opt_actor, opt_critic, opt_alpha = (torch.optim.Adam(p, lr=3e-3) for p in (actor.parameters(), critics.parameters(), [log_alpha]))
rng = np.random.default_rng(0)
t = lambda *s: torch.tensor(rng.standard_normal(s), dtype=torch.float32)
for step in range(6):
    obs, following, act = t(32, 3), t(32, 3), torch.tanh(t(32, 1))
    reward = -((act - obs[:, :1]) ** 2)
    with torch.no_grad():
        a, logp = actor(following, t(32, 1))
        q = torch.min(*[c(torch.cat([following, a], -1)) for c in targets]) - log_alpha.exp() * logp
        backup = reward + 0.9 * q
    critic_loss = sum(F.mse_loss(c(torch.cat([obs, act], -1)), backup) for c in critics)
    opt_critic.zero_grad()
    critic_loss.backward()
    opt_critic.step()
    a, logp = actor(obs, t(32, 1))
    q = torch.min(*[c(torch.cat([obs, a], -1)) for c in critics])
    actor_loss = (log_alpha.exp().detach() * logp - q).mean()
    opt_actor.zero_grad()
    actor_loss.backward()
    opt_actor.step()
    alpha_loss = (log_alpha.exp() * (-logp + 1).detach()).mean()
    opt_alpha.zero_grad()
    alpha_loss.backward()
    opt_alpha.step()
    with torch.no_grad():
        for p, target in zip(critics.parameters(), targets.parameters()):
            target.mul_(0.995).add_(p, alpha=0.005)
    print(f"{step} critic {critic_loss.item():.3f} actor {actor_loss.item():.3f} alpha {log_alpha.exp().item():.4f}")
