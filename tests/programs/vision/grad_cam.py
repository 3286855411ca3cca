"""Grad-CAM and guided backpropagation with hooks: where a network looks."""

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


model = fill(
    nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 12, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )
)
seen = {}


def keep_activation(module, args, output):
    seen["activation"] = output.detach()


def keep_gradient(module, grad_input, grad_output):
    seen["gradient"] = grad_output[0].detach()


handles = [model[3].register_forward_hook(keep_activation), model[3].register_full_backward_hook(keep_gradient)]
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((2, 1, 16, 16)), dtype=torch.float32, requires_grad=True)
scores = model(x)
target = scores.argmax(dim=1)
model.zero_grad()
scores.gather(1, target.unsqueeze(1)).sum().backward()
weights = seen["gradient"].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * seen["activation"]).sum(dim=1, keepdim=True))
cam = F.interpolate(cam, size=x.shape[2:], mode="bilinear", align_corners=False)
cam = cam - cam.amin(dim=(2, 3), keepdim=True)
cam = cam / (cam.amax(dim=(2, 3), keepdim=True) + 1e-8)
print(tuple(cam.shape), f"{cam.mean().item():.4f}", target.tolist())
for h in handles:
    h.remove()


def guided(module, grad_input, grad_output):
    return (grad_input[0].clamp(min=0.0),)


for m in model:
    if isinstance(m, nn.ReLU):
        m.register_full_backward_hook(guided)
image = x.detach().clone().requires_grad_(True)
model(image).max(dim=1).values.sum().backward()
print(f"saliency {image.grad.abs().sum().item():.4f}")
top = image.grad.abs().flatten(1).topk(3, dim=1).indices
print(top.tolist())
