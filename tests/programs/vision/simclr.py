"""Contrastive learning as SimCLR does: two views of each image, the NT-Xent loss, a projection head; then a linear probe."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def nt_xent(a, b, temperature=0.5):
    z = F.normalize(torch.cat([a, b]), dim=1)
    n = a.size(0)
    similarity = z @ z.T / temperature
    similarity.masked_fill_(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, target)


encoder = fill(nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(8, 16, 3, 2, 1), nn.ELU(), nn.Flatten()))
head = fill(nn.Sequential(nn.Linear(64, 32), nn.ReLU6(), nn.Linear(32, 16)), 1)
rng = np.random.default_rng(0)
kind = rng.integers(0, 2, 32)
images = np.zeros((32, 1, 8, 8))
images[kind == 0, :, :, ::2] = 1
images[kind == 1, :, ::2, :] = 1
images = torch.tensor(images, dtype=torch.float32)
noise = [torch.tensor(rng.standard_normal((32, 1, 8, 8)), dtype=torch.float32) * 0.2 for _ in range(2)]
optimizer = torch.optim.RMSprop([*encoder.parameters(), *head.parameters()], lr=1e-3, momentum=0.5)
for epoch in range(8):
    one = torch.roll(images, shifts=(epoch % 2, 0), dims=(2, 3)) + noise[0]
    two = torch.flip(images, dims=(3,)) + noise[1]
    loss = nt_xent(head(encoder(one)), head(encoder(two)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch} {loss.item():.3f}")
for p in encoder.parameters():
    p.requires_grad_(False)
features = encoder(images + noise[0])
probe = fill(nn.Linear(64, 2), 2)
optimizer = torch.optim.Adagrad(probe.parameters(), lr=0.1)
y = torch.tensor(kind)
for _ in range(20):
    optimizer.zero_grad()
    loss = F.nll_loss(F.log_softmax(probe(features), dim=1), y)
    loss.backward()
    optimizer.step()
print(f"probe {loss.item():.3f}", (probe(features).argmax(1) == y).all().item())
print(features.requires_grad, probe.weight.grad.shape)
