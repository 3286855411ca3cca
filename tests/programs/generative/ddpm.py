"""A denoising diffusion model: a noise schedule, a network with sinusoidal time embeddings, training and ancestral sampling."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


T = 20
betas = torch.linspace(1e-4, 0.2, T)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
previous = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - previous) / (1.0 - alphas_cumprod)


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half = self.dim // 2
        e = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        e = time[:, None] * e[None, :]
        return torch.cat((e.sin(), e.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPositionEmbeddings(16), nn.Linear(16, width), nn.Mish(), nn.Linear(width, width))
        self.inp, self.mid, self.out = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm = nn.RMSNorm(width)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time_mlp(t))
        h = h + F.hardswish(self.mid(self.norm(h)))
        return self.out(h)


model = fill(Denoiser())
nn.init.ones_(model.norm.weight)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 128)
x0 = torch.tensor(np.stack([np.cos(angle), np.sin(angle)], 1), dtype=torch.float32)
for step in range(30):
    t = torch.tensor(rng.integers(0, T, 128))
    noise = torch.tensor(rng.standard_normal((128, 2)), dtype=torch.float32)
    xt = extract(alphas_cumprod.sqrt(), t, x0.shape) * x0 + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * noise
    loss = F.huber_loss(model(xt, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"{step} {loss.item():.4f}")


@torch.no_grad()
def sample(n):
    x = torch.tensor(rng.standard_normal((n, 2)), dtype=torch.float32)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        mean = (x - extract(betas, t, x.shape) * model(x, t) / extract(torch.sqrt(1 - alphas_cumprod), t, x.shape)) / extract(
            alphas.sqrt(), t, x.shape
        )
        z = torch.tensor(rng.standard_normal((n, 2)), dtype=torch.float32) if i > 0 else torch.zeros(n, 2)
        x = mean + torch.sqrt(extract(posterior_variance, t, x.shape)) * z
    return x


s = sample(64)
print(f"{s.mean().item():.2f} {s.norm(dim=1).mean().item():.2f}")
