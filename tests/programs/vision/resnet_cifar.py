"""A small residual network on images whose class is a pattern, with augmentation, warm-up and a cosine schedule."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True))
        self.layers = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 16))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


rng = np.random.default_rng(1)
labels = rng.integers(0, 4, 96)
waves = np.stack([np.sin(np.arange(16) * (k + 1) / 2) for k in range(4)])
images = waves[labels][:, None, None, :] * np.ones((1, 3, 16, 1)) + 0.3 * rng.standard_normal((96, 3, 16, 16))
x, y = torch.tensor(images, dtype=torch.float32), torch.tensor(labels)

model = fill(Net())
for m in model.modules():
    if isinstance(m, nn.BatchNorm2d):
        nn.init.constant_(m.weight, 1)
        nn.init.constant_(m.bias, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
total = 18
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: (s + 1) / 3 if s < 3 else 0.5 * (1 + math.cos(math.pi * (s - 3) / (total - 3)))
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
model.train()
for step in range(total):
    part = slice(32 * (step % 3), 32 * (step % 3 + 1))
    batch = torch.flip(x[part], dims=[2]) if step % 2 else x[part]
    loss = criterion(model(batch), y[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 3 == 0:
        print(f"step {step} loss {loss.item():.3f} lr {schedule.get_last_lr()[0]:.4f}")
model.eval()
with torch.no_grad():
    right = (model(x).argmax(1) == y).float().mean()
print(f"accuracy over 0.6: {right.item() > 0.6}")
print(f"running mean {model.stem[1].running_mean.mean().item():.4f} batches {model.stem[1].num_batches_tracked.item()}")
print("parameters", sum(p.numel() for p in model.parameters()))
