"""Stochastic computation graphs: gradients through draws, by reparameterisation and by the score function."""

import storch
import torch
from torch.distributions import Bernoulli, Normal

torch.manual_seed(0)


def gradients(method):
    a, b = torch.tensor(5.0, requires_grad=True), torch.tensor(-3.0, requires_grad=True)
    e = method(Normal(b + 0.25, 1))
    f = (a + b) * e - 1.3
    storch.add_cost(f * f, "cost")
    storch.backward()
    return a.grad, b.grad, e, f


for method in (storch.method.Reparameterization("e", n_samples=200), storch.method.ScoreFunction("e", n_samples=200)):
    ga, gb, e, f = gradients(method)
    print(type(method).__name__, type(e).__name__, type(f).__name__, tuple(e.shape), [p.name for p in e.plates])
    print("gradients", type(ga).__name__, bool(20 < ga < 60), bool(torch.isfinite(gb)))

logits = torch.zeros(3, requires_grad=True)
z = storch.method.ScoreFunction("z", n_samples=50)(Bernoulli(logits=logits))
storch.add_cost(torch.sum((z - 1.0) ** 2, -1), "zeros are dear")
storch.backward()
print("towards ones", (logits.grad < 0).tolist())
