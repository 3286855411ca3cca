"""Optimal transport: Sinkhorn's iteration in the log domain, a point cloud moved along its gradient, an assignment."""

import numpy as np
import torch


def sinkhorn(a, b, x, y, eps=0.5, iterations=60):
    cost = (x[:, None] - y[None]).pow(2).sum(-1)
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(iterations):
        f = -eps * torch.logsumexp((g[None, :] - cost) / eps + b.log()[None, :], dim=1)
        g = -eps * torch.logsumexp((f[:, None] - cost) / eps + a.log()[:, None], dim=0)
    plan = torch.exp((f[:, None] + g[None, :] - cost) / eps) * a[:, None] * b[None, :]
    return (plan * cost).sum(), plan


rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((12, 2)), requires_grad=True)
y = torch.tensor(rng.standard_normal((10, 2)) + np.array([3.0, 0.0]))
a, b = torch.full((12,), 1 / 12, dtype=torch.float64), torch.full((10,), 0.1, dtype=torch.float64)
optimizer = torch.optim.Rprop([x], lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    distance, plan = sinkhorn(a, b, x, y)
    distance.backward()
    optimizer.step()
    if step % 2 == 0:
        print(f"{step} {distance.item():.5f}")
print("marginals:", torch.allclose(plan.sum(0), b, atol=1e-3), torch.allclose(plan.sum(1), a, atol=1e-2))
values, index = plan.max(dim=1)
print(sorted(set(index.tolist()))[:3], plan.argmax().item() >= 0)
