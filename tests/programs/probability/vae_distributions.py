"""A variational autoencoder in torch.distributions: rsample, a KL term from the registry, a Bernoulli likelihood, importance weights."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class VAE(nn.Module):
    def __init__(self, size=16, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 24), nn.Softsign(), nn.Linear(24, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 24), nn.SELU(), nn.Linear(24, size))

    def posterior(self, x):
        mean, scale = self.encoder(x).chunk(2, -1)
        return Independent(Normal(mean, nn.functional.softplus(scale) + 1e-3), 1)

    def likelihood(self, z):
        return Independent(Bernoulli(logits=self.decoder(z)), 1)


rng = np.random.default_rng(0)
x = torch.tensor((np.arange(16)[None] + rng.integers(0, 4, (48, 1))) % 4 < 2, dtype=torch.float32)
model = fill(VAE())
prior = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(16):
    q = model.posterior(x)
    z = q.mean + q.stddev * torch.tensor(rng.standard_normal((48, 2)), dtype=torch.float32)
    log_px = model.likelihood(z).log_prob(x)
    kl = kl_divergence(q, prior.expand(q.batch_shape))
    loss = (kl - log_px).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"{step} elbo {-loss.item():.3f} kl {kl.mean().item():.4f}")
with torch.no_grad():
    weights = model.likelihood(z).log_prob(x) + prior.log_prob(z) - q.log_prob(z)
    print(f"{torch.logsumexp(weights, 0).item() - np.log(48):.3f}")
print(q.rsample().requires_grad, q.sample().requires_grad, q.rsample((3,)).shape, q)
