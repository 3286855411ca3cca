"""An autoregressive image model: masked convolutions that see only what was drawn before, gated activations, sampling pixel by pixel."""

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


class MaskedConv2d(nn.Conv2d):
    def __init__(self, kind, *args, **kwargs):
        super().__init__(*args, **kwargs)
        h, w = self.weight.shape[2:]
        mask = torch.ones_like(self.weight.data)
        mask[:, :, h // 2, w // 2 + (kind == "B") :] = 0
        mask[:, :, h // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, x):
        self.weight.data *= self.mask
        return super().forward(x)


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = MaskedConv2d("B", width, 2 * width, 3, padding=1)

    def forward(self, x):
        return x + F.glu(self.conv(x), dim=1)


model = fill(nn.Sequential(MaskedConv2d("A", 1, 12, 5, 1, 2), nn.CELU(), Gated(12), nn.Hardsigmoid(), Gated(12), nn.Conv2d(12, 1, 1)))
rng = np.random.default_rng(0)
stripes = (np.arange(8)[None, :] + rng.integers(0, 4, (24, 1))) % 4 < 2
x = torch.tensor(stripes[:, None, None, :] * np.ones((24, 1, 8, 8)), dtype=torch.float32)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
for step in range(12):
    loss = F.binary_cross_entropy_with_logits(model(x), x, reduction="none").flatten(1).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"{step} nats an image {loss.item():.2f}")
model.eval()
image = torch.zeros(2, 1, 8, 8)
u = torch.tensor(rng.uniform(0.3, 0.7, (2, 1, 8, 8)), dtype=torch.float32)
with torch.no_grad():
    for i in range(8):
        for j in range(8):
            p = torch.sigmoid(model(image)[:, :, i, j])
            image[:, :, i, j] = (p > u[:, :, i, j]).float()
base = model(image)
image[0, 0, 5, 5] = 1 - image[0, 0, 5, 5]
print("sees only the past:", torch.equal(base[0, 0, :5], model(image)[0, 0, :5]))
print(torch.unique(image).tolist())
