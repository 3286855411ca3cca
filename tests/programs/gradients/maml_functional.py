"""Model-agnostic meta-learning with torch.func: functional_call, grad through an inner step, vmap over tasks."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


net = fill(nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1)))
params = {k: v.detach().clone().requires_grad_() for k, v in net.named_parameters()}
rng = np.random.default_rng(0)


def task_loss(p, x, y):
    return nn.functional.mse_loss(functional_call(net, p, (x,)), y)


def meta_loss(p, support, query):
    g = grad(task_loss)(p, *support)
    adapted = {k: p[k] - 0.05 * g[k] for k in g}
    return task_loss(adapted, *query)


def sample(tasks, k):
    amplitude, phase = rng.uniform(0.5, 2, (tasks, 1, 1)), rng.uniform(0, 3, (tasks, 1, 1))
    x = rng.uniform(-3, 3, (tasks, k, 1))
    return (torch.tensor(x, dtype=torch.float32), torch.tensor(amplitude * np.sin(x + phase), dtype=torch.float32)), amplitude, phase


optimizer = torch.optim.Adam(params.values(), lr=5e-3)
for step in range(8):
    (x, y), amplitude, phase = sample(6, 5)
    qx = rng.uniform(-3, 3, (6, 8, 1))
    qy = torch.tensor(amplitude * np.sin(qx + phase), dtype=torch.float32)
    losses = vmap(meta_loss, in_dims=(None, 0, 0))(params, (x, y), (torch.tensor(qx, dtype=torch.float32), qy))
    loss = losses.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print(f"{step} {loss.item():.4f} {tuple(losses.shape)}")
one = meta_loss(params, (x[0], y[0]), (torch.tensor(qx[0], dtype=torch.float32), qy[0]))
print(
    "as a loop does:",
    torch.allclose(one, vmap(meta_loss, (None, 0, 0))(params, (x, y), (torch.tensor(qx, dtype=torch.float32), qy))[0], rtol=1e-4),
)
