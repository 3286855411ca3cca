"""A Bayesian linear layer with a scale mixture prior; predictive mean and deviation."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(0)


def noise(*shape):
    return torch.tensor(rng.standard_normal(shape), dtype=torch.float32)


class BayesianLinear(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.weight_mu = nn.Parameter(noise(cout, cin) * 0.3)
        self.weight_rho = nn.Parameter(torch.full((cout, cin), -3.0))
        self.bias = nn.Parameter(torch.zeros(cout))
        self.register_buffer("kl", torch.zeros(()), persistent=False)

    def forward(self, x):
        sigma = torch.log1p(torch.exp(self.weight_rho))
        w = self.weight_mu + sigma * noise(*self.weight_mu.shape)
        posterior = torch.distributions.Normal(self.weight_mu, sigma).log_prob(w).sum()
        parts = torch.stack([torch.distributions.Normal(0.0, s).log_prob(w) + math.log(0.5) for s in (1.0, 0.1)])
        self.kl = posterior - torch.logsumexp(parts, dim=0).sum()
        return F.linear(x, w, self.bias)


net = nn.Sequential(BayesianLinear(1, 16), nn.Tanh(), BayesianLinear(16, 1))
x = torch.linspace(-2, 2, 24).unsqueeze(1)
y = torch.sin(2 * x) + 0.05 * noise(24, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(20):
    nll = F.gaussian_nll_loss(net(x), y, torch.full_like(y, 0.01), reduction="sum")
    loss = nll + sum(m.kl for m in net if isinstance(m, BayesianLinear)) / 10
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        print(f"{step} {loss.item():.2f}")
with torch.no_grad():
    draws = torch.stack([net(x) for _ in range(8)])
print(f"{draws.mean().item():.3f} {draws.std(dim=0).mean().item():.3f}", sorted(net.state_dict()))
