"""A Gaussian mixture: expectation maximisation by hand, the same density by MixtureSameFamily, and gradient descent on it."""

import numpy as np
import torch
import torch.distributions as D

rng = np.random.default_rng(0)
kind = rng.integers(0, 2, 80)
x = torch.tensor(np.where(kind[:, None], rng.standard_normal((80, 2)) * 0.5 + 2, rng.standard_normal((80, 2)) - 1))
weights = torch.full((2,), 0.5, dtype=torch.float64)
means = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
covariances = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
for step in range(12):
    log = D.MultivariateNormal(means, covariances).log_prob(x[:, None]) + weights.log()
    responsibility = log.softmax(dim=1)
    total = responsibility.sum(0)
    weights = total / len(x)
    means = responsibility.T @ x / total[:, None]
    centred = x[:, None] - means
    covariances = torch.einsum("nk,nki,nkj->kij", responsibility, centred, centred) / total[:, None, None] + 1e-6 * torch.eye(
        2, dtype=torch.float64
    )
    if step % 4 == 0:
        print(f"{step} {log.logsumexp(1).mean().item():.5f}")
order = means[:, 0].argsort()
print([[round(v, 2) for v in row] for row in means[order].tolist()], [round(v, 2) for v in weights[order].tolist()])
mixture = D.MixtureSameFamily(D.Categorical(weights), D.MultivariateNormal(means, covariances))
print(f"{mixture.log_prob(x).mean().item():.5f}", [round(v, 3) for v in mixture.mean.tolist()], mixture.sample((3,)).shape)

logits = torch.zeros(2, requires_grad=True)
locations = torch.tensor([[0.5, 0.0], [0.0, 0.5]], requires_grad=True)
scales = torch.zeros(2, 2, requires_grad=True)
optimizer = torch.optim.Adam([logits, locations, scales], lr=0.1)
for step in range(20):
    model = D.MixtureSameFamily(D.Categorical(logits=logits), D.Independent(D.Normal(locations, scales.exp()), 1))
    loss = -model.log_prob(x.float()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
