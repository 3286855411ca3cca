"""Model-agnostic meta-learning on sines: parameters as a list, inner steps kept in the graph, the outer gradient through them."""

import numpy as np
import torch
import torch.nn.functional as F
from torch.autograd import grad

rng = np.random.RandomState(10)
sizes = [(20, 1), (20,), (20, 20), (20,), (1, 20), (1,)]
params = [torch.tensor(0.3 * rng.randn(*s), requires_grad=True) for s in sizes]


def net(x, params):
    for i in range(0, 6, 2):
        x = F.linear(x, params[i], params[i + 1])
        if i < 4:
            x = torch.tanh(x)
    return x


def sine_task():
    amplitude, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
    return lambda n: (lambda x: (x, amplitude * torch.sin(x + phase)))(torch.tensor(rng.uniform(-3, 3, (n, 1))))


optimizer = torch.optim.Adam(params, lr=1e-2)
for step in range(1, 13):
    outer = torch.zeros((), dtype=torch.float64)
    for _ in range(3):
        draw = sine_task()
        x, y = draw(10)
        fast = params
        for _ in range(2):
            gradients = grad(F.mse_loss(net(x, fast), y), fast, create_graph=True)
            fast = [p - 0.05 * g for p, g in zip(fast, gradients)]
        x, y = draw(10)
        outer = outer + F.mse_loss(net(x, fast), y)
    optimizer.zero_grad()
    (outer / 3).backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"{step:3d} {outer.item() / 3:.6f} {sum(p.grad.abs().sum().item() for p in params):.5f}")
