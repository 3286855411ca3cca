"""Gaussian process regression: the marginal likelihood through a Cholesky factor, learned by L-BFGS; predictions with error bars."""

import math

import numpy as np
import torch

rng = np.random.default_rng(0)
x = torch.tensor(np.sort(rng.uniform(0, 6, 24)), dtype=torch.float64)
y = torch.sin(x) + 0.1 * torch.tensor(rng.standard_normal(24))
log_scale, log_length, log_noise = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(3))
parameters = [log_scale, log_length, log_noise]


def kernel(a, b):
    return log_scale.exp() * torch.exp(-0.5 * torch.cdist(a[:, None], b[:, None]).pow(2) / log_length.exp() ** 2)


def negative_log_likelihood():
    K = kernel(x, x) + log_noise.exp() * torch.eye(24, dtype=torch.float64)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y[:, None], L)
    return 0.5 * (y @ alpha).squeeze() + L.diagonal().log().sum() + 12 * math.log(2 * math.pi)


optimizer = torch.optim.LBFGS(parameters, lr=1, max_iter=5, line_search_fn="strong_wolfe")
for outer in range(4):

    def closure():
        optimizer.zero_grad()
        loss = negative_log_likelihood()
        loss.backward()
        return loss

    print(f"{outer} {optimizer.step(closure).item():.4f}")
with torch.no_grad():
    new = torch.linspace(0, 7, 8, dtype=torch.float64)
    L = torch.linalg.cholesky(kernel(x, x) + log_noise.exp() * torch.eye(24, dtype=torch.float64))
    cross = torch.linalg.solve_triangular(L, kernel(x, new), upper=False)
    mean = cross.T @ torch.linalg.solve_triangular(L, y[:, None], upper=False)
    variance = kernel(new, new).diagonal() - cross.pow(2).sum(0)
print([round(v, 2) for v in mean.squeeze(1).tolist()])
print([round(v, 2) for v in variance.clamp_min(0).sqrt().tolist()])
trace = torch.autograd.functional.hessian(lambda a: torch.logdet(a), torch.eye(2, dtype=torch.float64) * 2)
print(trace.shape, trace.sum().item())
