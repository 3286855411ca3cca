"""A normalising flow of affine couplings on two moons, with the base density from torch.distributions; exact inverses."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Independent, MultivariateNormal, Normal


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(), nn.Linear(24, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(), nn.Linear(24, 2))

    def forward(self, x):
        kept = x * self.mask
        s, t = self.s(kept) * (1 - self.mask), self.t(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(dim=1)

    def inverse(self, y):
        kept = y * self.mask
        s, t = self.s(kept) * (1 - self.mask), self.t(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (y - t) * torch.exp(-s)


class RealNVP(nn.Module):
    def __init__(self, count):
        super().__init__()
        masks = [torch.tensor([float(i % 2), float(1 - i % 2)]) for i in range(count)]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)
        self.prior = MultivariateNormal(torch.zeros(2), torch.eye(2))

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, d = layer(x)
            total = total + d
        return self.prior.log_prob(x) + total

    def invert(self, z):
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 128)
upper = rng.integers(0, 2, 128)
points = np.stack([np.cos(angle) + upper, np.sin(angle) * (1 - 2 * upper) + 0.5 * upper], 1) + 0.05 * rng.standard_normal((128, 2))
x = torch.tensor(points, dtype=torch.float32)
flow = fill(RealNVP(4))
optimizer = torch.optim.Adamax(flow.parameters(), lr=5e-3)
for step in range(20):
    loss = -flow.log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"{step}: {loss.item():.3f}")
with torch.no_grad():
    z = x
    for layer in flow.layers:
        z, _ = layer(z)
    print("inverts:", torch.allclose(flow.invert(z), x, atol=1e-4))
base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
print(f"{base.log_prob(x[:3]).sum().item():.4f} {flow.prior.entropy().item():.4f} {base.event_shape} {base.batch_shape}")
