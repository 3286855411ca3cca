"""A vector-quantised autoencoder: nearest codes, the straight-through estimator, commitment loss, codes renewed by a moving average."""

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


class VectorQuantizer(nn.Module):
    def __init__(self, codes, dim, commitment=0.25, decay=0.9):
        super().__init__()
        self.embedding = nn.Embedding(codes, dim)
        self.commitment, self.decay = commitment, decay
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("average", torch.zeros(codes, dim))

    def forward(self, x):
        flat = x.permute(0, 2, 3, 1).contiguous().view(-1, x.shape[1])
        w = self.embedding.weight
        distances = flat.pow(2).sum(1, keepdim=True) + w.pow(2).sum(1) - 2 * flat @ w.t()
        index = torch.argmin(distances, dim=1)
        one_hot = torch.zeros(len(index), w.shape[0]).scatter_(1, index.unsqueeze(1), 1)
        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
                self.average.mul_(self.decay).add_(one_hot.t() @ flat, alpha=1 - self.decay)
                w.data.lerp_(self.average / (self.cluster_size.unsqueeze(1) + 1e-5), 0.1)
        q = F.embedding(index, w).view(x.shape[0], *x.shape[2:], -1).permute(0, 3, 1, 2)
        loss = F.mse_loss(q, x.detach()) + self.commitment * F.mse_loss(x, q.detach())
        p = one_hot.mean(0)
        return x + (q - x).detach(), loss, torch.exp(-torch.sum(p * torch.log(p + 1e-10))), index


encoder = fill(nn.Sequential(nn.Conv2d(1, 8, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1)))
quantizer = fill(VectorQuantizer(8, 4), 1)
quantizer.average.copy_(quantizer.embedding.weight.data)
decoder = fill(nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.GELU(), nn.Upsample(scale_factor=2), nn.Conv2d(8, 1, 3, padding=1)), 2)
parameters = [p for m in (encoder, quantizer, decoder) for p in m.parameters()]
optimizer = torch.optim.RAdam(parameters, lr=1e-2)
rng = np.random.default_rng(0)
x = torch.tensor(np.sin(np.arange(8)[None, None, :, None] * rng.uniform(0.5, 2, (8, 1, 1, 1))) * np.ones((8, 1, 8, 8)), dtype=torch.float32)
for step in range(9):
    z, vq, perplexity, index = quantizer(encoder(x))
    y = decoder(z)
    loss = F.smooth_l1_loss(y, x, beta=0.5) + vq
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"{step} loss {loss.item():.3f} vq {vq.item():.3f} perplexity {perplexity.item():.1f}")
print(sorted(quantizer.state_dict()), index.bincount(minlength=8).sum().item())
