"""Training with checkpoints: an optimizer's state saved and loaded, parameter groups, frozen layers, hooks, an averaged copy, early stopping."""

import copy
import os
import tempfile

import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(12)
if torch.backends.cudnn.is_available():
    torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.use_deterministic_algorithms(True)
x = torch.from_numpy(rng.randn(64, 5)).float()
y = (x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0], [3.0]])).squeeze(1)


def build():
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 1), nn.Flatten(0))
    generator = np.random.RandomState(0)
    for p in model.parameters():
        p.data = torch.tensor(generator.randn(*p.shape) * 0.4, dtype=torch.float32)
    for p in model[2].parameters():
        p.requires_grad = False
    groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[4].parameters()}]
    return model, torch.optim.Adam(groups, lr=0.05)


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


model, optimizer = build()
seen = []
handle = model[1].register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)))
print(f"{train(model, optimizer, 5):.5f}")
handle.remove()
average = copy.deepcopy(model)
for p in average.parameters():
    p.requires_grad_(False)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pth")
    torch.save({"epoch": 5, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict()}, path)
    again, other = build()
    checkpoint = torch.load(path, map_location="cpu")
    again.load_state_dict(checkpoint["model_state_dict"])
    other.load_state_dict(checkpoint["optimizer_state_dict"])
print(checkpoint["epoch"], seen[:2], [len(g["params"]) for g in other.param_groups])
for step in range(3):
    train(again, other, 5)
    with torch.no_grad():
        for a, p in zip(average.parameters(), again.parameters()):
            a.mul_(0.5).add_(p, alpha=0.5)
print(f"{train(again, other, 1):.5f} {train(model, optimizer, 16):.5f} {nn.functional.mse_loss(average(x), y).item():.5f}")
print(model[2].weight.grad is None, all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters())))
best, wait = float("inf"), 0
for epoch in range(100):
    loss = train(model, optimizer, 5)
    if loss < best * 0.9:
        best, wait = loss, 0
    else:
        wait += 1
        if wait >= 2:
            break
print("stopped", epoch < 99, model[0].weight.device, torch.are_deterministic_algorithms_enabled())
