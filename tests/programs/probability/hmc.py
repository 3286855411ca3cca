"""Hamiltonian Monte Carlo for a Bayesian logistic regression, the gradient of the log-density by autograd; leapfrog and acceptance."""

import numpy as np
import torch
from torch.distributions import Bernoulli, Gamma, HalfCauchy, Laplace, Normal, StudentT

rng = np.random.default_rng(0)
X = torch.tensor(rng.standard_normal((60, 2)))
y = (X @ torch.tensor([1.5, -1.0], dtype=torch.float64) + torch.tensor(rng.logistic(size=60)) > 0).double()


def log_density(w):
    return Normal(0.0, 2.0).log_prob(w).sum() + Bernoulli(logits=X @ w).log_prob(y).sum()


def gradient(w):
    w = w.detach().requires_grad_(True)
    return torch.autograd.grad(log_density(w), w)[0]


w, kept, accepted = torch.zeros(2, dtype=torch.float64), [], 0
for i in range(60):
    p = torch.tensor(rng.standard_normal(2))
    q, momentum = w.clone(), p + 0.05 * gradient(w)
    for leap in range(8):
        q = q + 0.1 * momentum
        if leap < 7:
            momentum = momentum + 0.1 * gradient(q)
    momentum = momentum + 0.05 * gradient(q)
    ratio = log_density(q) - momentum.pow(2).sum() / 2 - log_density(w) + p.pow(2).sum() / 2
    if np.log(rng.uniform()) < ratio.item():
        w, accepted = q, accepted + 1
    kept.append(w)
kept = torch.stack(kept)[10:]
print("accepts most:", accepted > 40, [round(v, 2) for v in kept.mean(0).tolist()], [round(v, 2) for v in kept.std(0).tolist()])
t = torch.tensor([0.5, 1.5])
for d in (Laplace(0.0, 1.0), StudentT(3.0), Gamma(2.0, 1.5), HalfCauchy(1.0)):
    print(type(d).__name__, [round(v, 4) for v in d.log_prob(t).tolist()], d.support)
