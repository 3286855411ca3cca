"""laplace-torch: the posterior around a trained network, of its last layer and of all, and what it predicts."""

import numpy as np
import torch
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs = torch.tensor(rng.standard_normal((40, 2)), dtype=torch.float32)
targets = torch.sin(inputs[:, :1]) + 0.1 * torch.tensor(rng.standard_normal((40, 1)), dtype=torch.float32)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=20)
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(0.5 * rng.standard_normal(tuple(p.shape))))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(40):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
print("loss", round(float(nn.functional.mse_loss(model(inputs), targets)), 4))
for subset, structure in (("last_layer", "full"), ("last_layer", "kron"), ("all", "diag")):
    posterior = Laplace(model, "regression", subset_of_weights=subset, hessian_structure=structure)
    posterior.fit(loader)
    mean, variance = posterior(inputs[:4])
    print(
        subset, structure, "mean", *[round(float(v), 4) for v in mean[:, 0]], "variance", *[round(float(v), 3) for v in variance.flatten()]
    )
    print(subset, structure, "evidence", round(float(posterior.log_marginal_likelihood()), 2))
