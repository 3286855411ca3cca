"""A U-Net finds discs in noisy pictures: Dice and cross-entropy together, intersection over union at the end."""

import numpy as np
import torch
from torch import nn


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1),
            nn.GroupNorm(2, cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1),
            nn.GroupNorm(2, cout),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1, self.down2, self.middle = DoubleConv(1, width), DoubleConv(width, 2 * width), DoubleConv(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.merge2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2), DoubleConv(4 * width, 2 * width)
        self.up1 = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(2 * width, width, 1))
        self.merge1, self.head = DoubleConv(2 * width, width), nn.Conv2d(width, 2, kernel_size=1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.middle(self.pool(b))
        b = self.merge2(torch.cat([b, self.up2(c)], dim=1))
        return self.head(self.merge1(torch.cat([a, self.up1(b)], dim=1)))


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def dice_loss(logits, target, eps=1.0):
    p = logits.softmax(1)[:, 1]
    t = target.float()
    overlap = (p * t).sum(dim=(1, 2))
    return 1 - ((2 * overlap + eps) / (p.sum(dim=(1, 2)) + t.sum(dim=(1, 2)) + eps)).mean()


rng = np.random.default_rng(0)
grid = np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij"), -1)
masks = np.stack([((grid - rng.uniform(4, 12, 2)) ** 2).sum(-1) < rng.uniform(6, 20) for _ in range(16)])
pictures = masks[:, None] + 0.4 * rng.standard_normal((16, 1, 16, 16))
x, y = torch.from_numpy(pictures).float(), torch.from_numpy(masks.astype(np.int64))

net = fill(UNet())
for m in net.modules():
    if isinstance(m, nn.GroupNorm):
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
weight = torch.tensor([0.5, 1.5])
for step in range(10):
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, y, weight=weight) + dice_loss(logits, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print(f"{step}: {loss.item():.3f}")
with torch.inference_mode():
    guess = net(x).argmax(1)
both, either = (guess & y).sum().item(), (guess | y).sum().item()
print(f"intersection over union above 0.6: {both / either > 0.6}")
