"""Bayesian regression by Hamiltonian Monte Carlo on unconstrained parameters: transform_to, log_prob, Jacobians."""

import numpy as np
import torch
import torch.distributions as dist
from torch.distributions import constraints, transform_to

torch.set_default_dtype(torch.float64)
rng = np.random.RandomState(6)
X = torch.tensor(rng.randn(80, 2))
y = X @ torch.tensor([1.5, -0.7]) + 0.4 + torch.tensor(0.3 * rng.standard_t(6, size=80))
to_positive = transform_to(constraints.positive)
priors = {
    "w": dist.MultivariateNormal(torch.zeros(2), 4.0 * torch.eye(2)),
    "b": dist.Laplace(0.0, 1.0),
    "sigma": dist.HalfCauchy(1.0),
    "df": dist.Gamma(2.0, 0.1),
}
for name, prior in priors.items():
    print(name, prior, prior.support, tuple(prior.event_shape))


def log_joint(theta):
    w, b, u_sigma, u_df = theta[:2], theta[2], theta[3], theta[4]
    sigma, df = to_positive(u_sigma), to_positive(u_df)
    total = dist.StudentT(df, X @ w + b, sigma).log_prob(y).sum()
    total = total + priors["w"].log_prob(w) + priors["b"].log_prob(b) + priors["sigma"].log_prob(sigma) + priors["df"].log_prob(df)
    return total + to_positive.log_abs_det_jacobian(u_sigma, sigma) + to_positive.log_abs_det_jacobian(u_df, df)


def gradient(theta):
    theta = theta.detach().requires_grad_(True)
    value = log_joint(theta)
    return value.detach(), torch.autograd.grad(value, theta)[0]


theta = torch.zeros(5)
for _ in range(60):  # first to the mode
    value, g = gradient(theta)
    theta = theta + 0.3 * g / g.norm().clamp(min=10.0)
print(f"mode {value.item():.3f}", [round(v, 2) for v in theta.tolist()])
mass = dist.Normal(torch.zeros(5), torch.ones(5))
samples, accepted, step = [], 0, 0.045
value, g = gradient(theta)
for i in range(60):
    momentum = mass.icdf(torch.tensor(rng.rand(5)))  # numpy's, so that every library walks the same way
    q, p, gq = theta.clone(), momentum.clone(), g
    for _ in range(6):
        p = p + 0.5 * step * gq
        q = q + step * p
        new_value, gq = gradient(q)
        p = p + 0.5 * step * gq
    energy = value + mass.log_prob(momentum).sum() - new_value - mass.log_prob(p).sum()
    if np.log(rng.rand()) < -energy.item():
        theta, value, g, accepted = q, new_value, gq, accepted + 1
    samples.append(theta)
draws = torch.stack(samples)
print("accepted", accepted)
print("posterior mean of w", [round(v, 3) for v in draws[:, :2].mean(0).tolist()], "b", round(draws[:, 2].mean().item(), 3))
print("sigma", round(to_positive(draws[:, 3]).mean().item(), 3))
posterior = dist.StudentT(5.0, 0.0, 0.3)
print(round(posterior.variance.item(), 4), round(posterior.entropy().item(), 4), posterior.mean.item())
laplace = dist.MultivariateNormal(draws.mean(0), torch.cov(draws.T) + 1e-3 * torch.eye(5))
exact = dist.MultivariateNormal(draws.mean(0), scale_tril=laplace.scale_tril)
print(round(dist.kl_divergence(laplace, exact).item(), 6), laplace.rsample((3,)).shape)
torch.set_default_dtype(torch.float32)
