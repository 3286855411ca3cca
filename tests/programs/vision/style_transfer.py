"""Neural style transfer: an image is optimised with L-BFGS so that its features match one picture's and their correlations another's."""

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


def gram(x):
    n, c, h, w = x.size()
    f = x.view(n * c, h * w)
    return torch.mm(f, f.t()).div(n * c * h * w)


layers = fill(
    nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.Tanh()
    )
)
layers.requires_grad_(False).eval()
rng = np.random.default_rng(0)
content = torch.tensor(rng.uniform(0, 1, (1, 3, 12, 12)), dtype=torch.float32)
style = torch.tensor(rng.uniform(0, 1, (1, 3, 12, 12)), dtype=torch.float32).cumsum(2) / 6


def features(x):
    found = []
    for layer in layers:
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            found.append(x)
    return found


wanted = features(content)[-1].detach()
correlations = [gram(f).detach() for f in features(style)]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image], lr=0.5, max_iter=4, history_size=5)
losses = []
for outer in range(3):

    def closure():
        optimizer.zero_grad()
        found = features(image)
        loss = F.mse_loss(found[-1], wanted) + 50 * sum(F.mse_loss(gram(f), c) for f, c in zip(found, correlations))
        tv = (image[..., 1:] - image[..., :-1]).abs().mean() + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
        loss = loss + 0.01 * tv
        loss.backward()
        losses.append(loss.item())
        return loss

    value = optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
    print(f"round {outer}: {value.item():.4f}")
print("falls:", losses[-1] < losses[0], "calls:", len(losses))
print(f"mean {image.mean().item():.3f} {image.grad.abs().max().item() < 1}")
