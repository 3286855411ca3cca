"""Variational inference without bijectors of one's own: biject_to, LogNormal and Beta posteriors, closed and sampled divergences."""

import numpy as np
import torch
from torch.distributions import Bernoulli, Beta, Gamma, LogNormal, Normal, Poisson, biject_to, constraints, kl_divergence, register_kl

rng = np.random.RandomState(7)

# --- conjugate: the exact posterior of coin tosses and of counts
tosses = torch.from_numpy((rng.rand(40) < 0.7).astype(np.float32))
prior = Beta(2.0, 2.0)
posterior = Beta(2.0 + tosses.sum(), 2.0 + (1 - tosses).sum())
print(f"posterior mean {posterior.mean.item():.4f} mode {posterior.mode.item():.4f} sd {posterior.stddev.item():.4f}")
print(f"evidence of surprise {kl_divergence(posterior, prior).item():.4f}")
counts = torch.from_numpy(rng.poisson(3.0, size=30).astype(np.float32))
rate = Gamma(1.0 + counts.sum(), 0.5 + len(counts))
print(f"rate {rate.mean.item():.4f} +- {rate.stddev.item():.4f}, likelihood {Poisson(rate.mean).log_prob(counts).sum().item():.3f}")
print("90 % below", round(rate.cdf(rate.mean + 1.2816 * rate.stddev).item(), 2))


# --- a divergence of one's own, for a pair that has none
@register_kl(LogNormal, Gamma)
def _kl_lognormal_gamma(p, q):
    cross = q.concentration * q.rate.log() - q.concentration.lgamma() + (q.concentration - 1) * p.loc - q.rate * p.mean
    return -p.entropy() - cross


# --- variational: a log-normal posterior of the rate
loc, log_scale = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
optimizer = torch.optim.Adam([loc, log_scale], lr=0.1)
quantiles = torch.from_numpy((np.arange(16, dtype=np.float32) + 0.5) / 16)  # of even spacing in place of random numbers
for step in range(60):
    q = LogNormal(loc, log_scale.exp())
    drawn = q.icdf(quantiles)
    loss = -Poisson(drawn.unsqueeze(-1)).log_prob(counts).sum(-1).mean() + kl_divergence(q, Gamma(1.0, 0.5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step} loss {loss.item():.3f} rate {q.mean.item():.3f}")

# --- unconstrained parameters of constrained distributions
for constraint in (
    constraints.positive,
    constraints.unit_interval,
    constraints.interval(-1.0, 2.0),
    constraints.simplex,
    constraints.corr_cholesky,
):
    t = biject_to(constraint)
    x = torch.linspace(-1.0, 1.0, 3)
    y = t(x)
    print(
        type(t).__name__,
        bool(constraint.check(y).all()),
        bool((t.inv(y) - x).abs().max() < 1e-4),
        [round(v, 3) for v in t.log_abs_det_jacobian(x, y).flatten().tolist()],
    )

# --- the same gradient by two estimators
theta = torch.tensor(0.6, requires_grad=True)
torch.manual_seed(0)
p = Bernoulli(theta.expand(20000))
x = p.sample()
score = torch.autograd.grad((p.log_prob(x) * (x - 0.25) ** 2).mean(), theta)[0]
mu = torch.tensor(0.6, requires_grad=True)
path = torch.autograd.grad((Normal(mu, 1.0).rsample((20000,)) ** 2).mean(), mu)[0]
print(bool((score - 0.5).abs() < 0.05), bool((path - 1.2).abs() < 0.1))
g = Gamma(torch.tensor(2.0, requires_grad=True), torch.tensor(1.5))
slope = torch.autograd.grad(g.rsample((20000,)).mean(), g.concentration)[0]
print("dE x / d concentration", bool((slope - 1 / 1.5).abs() < 0.03))
