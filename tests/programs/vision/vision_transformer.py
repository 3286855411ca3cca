"""A vision transformer: patches, a class token, learned positions, pre-norm encoder layers."""

import numpy as np
import torch
import torch.nn as nn


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, width=32, depth=2, heads=4, classes=3):
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        count = (size // patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, count + 1, width))
        layer = nn.TransformerEncoderLayer(
            d_model=width, nhead=heads, dim_feedforward=64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.encoder(x))[:, 0])


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


model = fill(ViT())
for m in model.modules():
    if isinstance(m, nn.LayerNorm):
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)
rng = np.random.default_rng(3)
labels = rng.integers(0, 3, 24)
pixels = rng.standard_normal((24, 3, 16, 16)) * 0.5
pixels[np.arange(24), labels] += 1
x, y = torch.tensor(pixels, dtype=torch.float32), torch.tensor(labels)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(12):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f} norm {norm.item():.2f}")
print("accuracy", (model(x).argmax(-1) == y).float().mean().item() > 0.9)
print(len(model.state_dict()), sum(p.numel() for p in model.parameters() if p.requires_grad))
print([n for n, _ in model.named_parameters()][3:7])
