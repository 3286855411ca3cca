"""Gradients accumulated over micro-batches, and activation checkpointing: both give the gradients of the plain step."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Deep(nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(3))
        self.head, self.recompute = nn.Linear(8, 2), recompute

    def forward(self, x):
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.recompute else block(x))
        return self.head(x)


rng = np.random.default_rng(0)
x, y = torch.tensor(rng.standard_normal((24, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 2, 24))
plain, recomputing = fill(Deep(False)), fill(Deep(True))
criterion = nn.CrossEntropyLoss()
criterion(plain(x), y).backward()
criterion(recomputing(x), y).backward()
print("checkpointing:", all(torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), recomputing.parameters())))

whole = [p.grad.clone() for p in plain.parameters()]
plain.zero_grad()
for a, b in zip(x.chunk(4), y.chunk(4)):
    (criterion(plain(a), b) / 4).backward()
print("accumulation:", all(torch.allclose(p.grad, g, atol=1e-6) for p, g in zip(plain.parameters(), whole)))

stack = fill(nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)]))
z = x.clone().requires_grad_()
checkpoint_sequential(stack, 2, z, use_reentrant=False).sum().backward()
again = x.clone().requires_grad_()
stack(again).sum().backward()
print("sequential:", torch.allclose(z.grad, again.grad))

torch.manual_seed(0)
dropping = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5))
v = x.clone().requires_grad_()
out = checkpoint(dropping, v, use_reentrant=False)
out.sum().backward()
kept = (out != 0).float()
print("the same mask again:", torch.allclose(v.grad, 2 * kept @ dropping[0].weight, atol=1e-5))
optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-2, fused=False, foreach=True)
for step in range(8):
    loss = criterion(plain(x[step % 4 :: 4]), y[step % 4 :: 4]) / 2
    loss.backward()
    if (step + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
print(f"{criterion(plain(x), y).item():.4f}")
