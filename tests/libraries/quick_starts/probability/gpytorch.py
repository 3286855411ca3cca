"""Gaussian processes: an exact one and a variational one, trained for a few steps, and their predictions."""

import tempfile
from pathlib import Path

import gpytorch
import numpy as np
import torch

torch.manual_seed(0)
x = torch.from_numpy(np.linspace(0, 1, 30)).float()
y = torch.sin(6 * x) + torch.from_numpy(np.random.default_rng(0).standard_normal(30) * 0.1).float()


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5) + gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train()
for step in range(8):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    print("exact", step, round(loss.item(), 3))
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(model(torch.linspace(0, 1, 5)))
    lower, upper = predicted.confidence_region()
print("mean", [round(v, 2) for v in predicted.mean.tolist()])
print("band", [round(v, 2) for v in (upper - lower).tolist()])

with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), Path(folder, "gp.pt"))
    again = Exact(x, y, gpytorch.likelihoods.GaussianLikelihood())
    again.load_state_dict(torch.load(Path(folder, "gp.pt")))
print("loaded", round(again.covar_module.outputscale.item(), 3))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


model, likelihood = Variational(x[::5].clone().unsqueeze(-1)), gpytorch.likelihoods.GaussianLikelihood()
model.variational_strategy.variational_params_initialized.fill_(1)  # from zero, and not from a draw
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=30)
optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = -objective(model(x.unsqueeze(-1)), y)
    loss.backward()
    optimizer.step()
    print("variational", step, round(loss.item(), 3))
model.eval()
print("predicted", [round(v, 2) for v in model(x[:3].unsqueeze(-1)).mean.tolist()])
