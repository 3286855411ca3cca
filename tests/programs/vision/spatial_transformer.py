"""A spatial transformer network learns to undo a shift: affine_grid and grid_sample inside the network."""

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


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.Flatten())
        self.fc_loc = nn.Sequential(nn.Linear(4 * 4 * 4, 16), nn.Hardtanh(), nn.Linear(16, 6))
        self.fc = nn.Linear(144, 3)

    def start(self):
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def stn(self, x):
        theta = self.fc_loc(self.localization(x)).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)

    def forward(self, x):
        return F.log_softmax(self.fc(torch.flatten(self.stn(x), 1)), dim=1)


model = fill(STN())
model.start()
rng = np.random.default_rng(5)
labels = rng.integers(0, 3, 30)
images = np.zeros((30, 1, 12, 12))
for i, k in enumerate(labels):
    r, c = rng.integers(2, 8, 2)
    images[i, 0, r : r + 2 + k, c : c + 2] = 1
x, y = torch.tensor(images, dtype=torch.float32), torch.tensor(labels)
print("starts as the identity:", torch.allclose(model.stn(x), x, atol=1e-5))
model.fc_loc[2].bias.data += torch.tensor([0.06, 0.03, 0.04, -0.02, -0.05, 0.07])
optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
for epoch in range(12):
    optimizer.zero_grad()
    loss = F.nll_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if epoch % 4 == 0:
        print(f"{epoch} {loss.item():.3f}")
print(f"{model.fc_loc[2].bias.grad.norm().item() > 0} {model.fc_loc[2].bias.detach()[0].item():.2f}")
