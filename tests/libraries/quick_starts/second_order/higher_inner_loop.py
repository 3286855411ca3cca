"""higher: a learning rate that is learned through the steps of an inner loop of training."""

import higher
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs = torch.tensor(rng.standard_normal((20, 3)), dtype=torch.float32)
targets = (inputs @ torch.tensor([[1.0], [-2.0], [0.5]])).sin()
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(0.4 * rng.standard_normal(tuple(p.shape))))
rate = torch.tensor(0.05, requires_grad=True)
outer = torch.optim.SGD([rate], lr=0.05)
for step in range(4):
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    with higher.innerloop_ctx(model, inner, copy_initial_weights=True, override={"lr": [rate]}) as (fmodel, diffopt):
        for _ in range(5):
            diffopt.step(((fmodel(inputs[:10]) - targets[:10]) ** 2).mean())
        loss = ((fmodel(inputs[10:]) - targets[10:]) ** 2).mean()
        outer.zero_grad()
        loss.backward()
    outer.step()
    print(f"step {step} loss", round(loss.item(), 5), "gradient", round(rate.grad.item(), 5), "rate", round(rate.item(), 5))

with higher.innerloop_ctx(model, torch.optim.Adam(model.parameters(), lr=0.01)) as (fmodel, diffopt):
    for _ in range(3):
        diffopt.step(((fmodel(inputs) - targets) ** 2).mean())
    grads = torch.autograd.grad(((fmodel(inputs) - targets) ** 2).mean(), fmodel.parameters(time=0))
print("through Adam", *[round(float(g.norm()), 4) for g in grads])
