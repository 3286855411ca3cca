"""Mixup and label smoothing by hand; every schedule a script is likely to use, beside each other."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def soft_cross_entropy(logits, target):
    return torch.sum(-target * F.log_softmax(logits, dim=-1), dim=-1).mean()


rng = np.random.default_rng(0)
x, y = torch.tensor(rng.standard_normal((32, 6)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, 32))
model = fill(nn.Sequential(nn.Linear(6, 16), nn.Hardswish(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=10, pct_start=0.3)
for step in range(10):
    lam, index = rng.beta(0.4, 0.4), torch.tensor(rng.permutation(32))
    mixed = lam * x + (1 - lam) * x[index]
    one_hot = F.one_hot(y, 3).float() * 0.9 + 0.1 / 3
    loss = soft_cross_entropy(model(mixed), lam * one_hot + (1 - lam) * one_hot[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 3 == 0:
        print(f"{step} {loss.item():.4f} {scheduler.get_last_lr()[0]:.4f} {optimizer.param_groups[0]['momentum']:.4f}")

makers = {
    "step": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "multi": lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1),
    "poly": lambda o: lr_scheduler.PolynomialLR(o, 8, power=2.0),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, step_size_up=2, mode="triangular2"),
    "constant": lambda o: lr_scheduler.ConstantLR(o, 0.5, 4),
    "chained": lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.LinearLR(o, 0.5, 1.0, 4)]),
    "times": lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.95),
}
for name, make in makers.items():
    o = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    s, rates = make(o), []
    for _ in range(8):
        rates.append(round(o.param_groups[0]["lr"], 4))
        o.step()
        s.step()
    print(name, rates)
o = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
plateau, rates = lr_scheduler.ReduceLROnPlateau(o, mode="min", factor=0.5, patience=1), []
for metric in (3, 2, 2, 2, 2, 1, 1, 1, 1):
    plateau.step(metric)
    rates.append(o.param_groups[0]["lr"])
print("plateau", rates, plateau.get_last_lr())
