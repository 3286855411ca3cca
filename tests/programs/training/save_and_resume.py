"""A checkpoint of model, optimizer and schedule: training that stops and goes on gives what training without a stop gives."""

import os
import random
import tempfile

import numpy as np
import torch
from torch import nn, optim


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def build():
    model = fill(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 1)))
    optimizer = optim.AdamW([{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2:].parameters()}], lr=1e-2)
    scheduler = optim.lr_scheduler.SequentialLR(
        optimizer,
        schedulers=[optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9)],
        milestones=[3],
    )
    return model, optimizer, scheduler


rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((40, 5)), dtype=torch.float32)
y = x.sum(1, keepdim=True).sin()


def train(model, optimizer, scheduler, steps):
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()


model, optimizer, scheduler = build()
whole = train(model, optimizer, scheduler, 10)
one = build()
train(*one, 4)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save({"epoch": 4, "model": one[0].state_dict(), "optimizer": one[1].state_dict(), "scheduler": one[2].state_dict()}, path)
    two = build()
    with torch.no_grad():
        for p in two[0].parameters():
            p.zero_()
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
print(checkpoint["epoch"], sorted(checkpoint))
print(two[0].load_state_dict(checkpoint["model"]))
two[1].load_state_dict(checkpoint["optimizer"])
two[2].load_state_dict(checkpoint["scheduler"])
print("the same loss:", abs(train(*two, 6) - whole) < 1e-6)
print([f"{g['lr']:.6f}" for g in two[1].param_groups], two[2].last_epoch)
state = {k: v for k, v in checkpoint["model"].items() if not k.startswith("3.")}
state["4.weight"] = torch.zeros(1)
try:
    two[0].load_state_dict(state)
except RuntimeError as error:
    print("Missing" in str(error), "Unexpected" in str(error), "3.bias" in str(error))
print(two[0].load_state_dict(state, strict=False))
