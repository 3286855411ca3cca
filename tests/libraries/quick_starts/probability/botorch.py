"""Bayesian optimisation: a Gaussian process fitted to a few values, and the points that expected improvement asks for next."""

import warnings

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.manual_seed(0)
bounds = torch.stack([torch.zeros(2), torch.ones(2)]).double()


def value(x):
    return 1 - ((x - 0.5) ** 2).sum(-1, keepdim=True)


x = torch.from_numpy(np.random.default_rng(0).random((8, 2)))
y = value(x)
first = y.max().item()
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(torch.tensor([[0.5, 0.5], [0.1, 0.9]]).double())
print("posterior", [round(v, 2) for v in posterior.mean.flatten().tolist()])
print("log improvement", round(float(LogExpectedImprovement(model, best_f=y.max())(torch.tensor([[[0.5, 0.5]]]).double()).detach()), 1))
candidate, _ = optimize_acqf(LogExpectedImprovement(model, best_f=y.max()), bounds=bounds, q=1, num_restarts=3, raw_samples=16)
print("candidate near the top", tuple(candidate.shape), bool((candidate - 0.5).abs().max() < 0.1))
for step in range(2):
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    sampler = SobolQMCNormalSampler(torch.Size([32]), seed=1)
    improvement = qExpectedImprovement(model, best_f=y.max(), sampler=sampler)
    points, _ = optimize_acqf(improvement, bounds=bounds, q=2, num_restarts=2, raw_samples=8)
    x = torch.cat([x, points])
    y = value(x)
    print("points", step, tuple(points.shape), bool(((points >= 0) & (points <= 1)).all()))
print("improved", y.max().item() > first, y.max().item() > 0.99)
