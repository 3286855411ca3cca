"""Pruning rounds with fine-tuning, orthogonal and normalised weights by parametrization, spectral norm, frozen layers."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrize, prune
from torch.nn.utils.parametrizations import orthogonal, weight_norm


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((48, 6)), dtype=torch.float32)
y = (x @ torch.tensor(rng.standard_normal((6, 3)), dtype=torch.float32)).argmax(1)
model = fill(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for round in range(3):
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    prune.l1_unstructured(model[0], name="weight", amount=0.25)
    zeros = (model[0].weight == 0).float().mean().item()
    print(f"round {round} loss {loss.item():.4f} sparsity {zeros:.3f}")
print(sorted(n for n, _ in model[0].named_parameters()), [n for n, _ in model[0].named_buffers()])
prune.remove(model[0], "weight")
prune.ln_structured(model[2], name="weight", amount=0.5, n=2, dim=1)
print((model[2].weight.abs().sum(0) == 0).sum().item(), prune.is_pruned(model))

layer = orthogonal(fill(nn.Linear(4, 4)))
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(10):
    opt.zero_grad()
    (layer(x[:, :4]) - x[:, 1:5]).pow(2).mean().backward()
    opt.step()
print("orthogonal:", torch.dist(layer.weight @ layer.weight.T, torch.eye(4)).item() < 1e-4, list(layer.state_dict()))
square = fill(nn.Linear(3, 3))
parametrize.register_parametrization(square, "weight", Symmetric())
print(torch.equal(square.weight, square.weight.T), parametrize.is_parametrized(square))
parametrize.remove_parametrizations(square, "weight")
print(torch.equal(square.weight, square.weight.T), [n for n, _ in square.named_parameters()])
normed = weight_norm(fill(nn.Conv1d(2, 3, 3)), dim=0)
print(f"{normed(x[:4].view(4, 2, 3)).sum().item():.4f}", sorted(normed.state_dict()))
for p in model[:2].parameters():
    p.requires_grad = False
tuned = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
F.cross_entropy(model(x), y).backward()
tuned.step()
print(len(tuned.param_groups[0]["params"]), model[0].bias.grad is not None)
