"""BackPACK: first and second order quantities of a small classifier beside its gradient, and a step preconditioned by them."""

import numpy as np
import torch
from backpack import backpack, extend
from backpack.extensions import KFAC, BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, SumGradSquared, Variance
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs = torch.tensor(rng.standard_normal((16, 5)), dtype=torch.float32)
labels = torch.tensor(rng.integers(0, 3, 16))


def network() -> nn.Sequential:
    """A network with weights drawn by numpy."""
    model = nn.Sequential(nn.Linear(5, 6), nn.Sigmoid(), nn.Linear(6, 3))
    weights = np.random.default_rng(1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(0.5 * weights.standard_normal(tuple(p.shape))))
    return model


model, loss_of = extend(network()), extend(nn.CrossEntropyLoss())
with backpack(BatchGrad(), BatchL2Grad(), SumGradSquared(), Variance(), DiagGGNExact(), DiagHessian()):
    loss = loss_of(model(inputs), labels)
    loss.backward()
print("loss", round(float(loss), 5))
for name, p in model.named_parameters():
    print(
        name,
        "gradient",
        round(float(p.grad.norm()), 5),
        "of each",
        round(float(p.grad_batch.norm()), 5),
        "variance",
        round(float(p.variance.sum()), 6),
    )
    print(
        name,
        "ggn",
        round(float(p.diag_ggn_exact.sum()), 5),
        "hessian",
        round(float(p.diag_h.sum()), 5),
        "squares",
        round(float(p.sum_grad_squared.sum()), 5),
    )
    assert torch.allclose(p.grad_batch.sum(0), p.grad, atol=1e-6)
    assert torch.allclose(p.batch_l2, (p.grad_batch**2).flatten(1).sum(1), atol=1e-6)

with backpack(KFAC(mc_samples=1)):
    loss_of(model(inputs), labels).backward()
print("factors", [[tuple(f.shape) for f in p.kfac] for p in model.parameters()])

model = extend(network())
losses = []
for _ in range(20):
    model.zero_grad()
    with backpack(DiagGGNExact()):
        loss = loss_of(model(inputs), labels)
        loss.backward()
    losses.append(loss.item())
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(0.1 * p.grad / (p.diag_ggn_exact + 0.05))
print("losses", *[round(v, 4) for v in losses[::5]])
