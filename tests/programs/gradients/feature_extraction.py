"""Modules from the inside: hooks of every kind, intermediate features, adversarial examples (FGSM, PGD), a lazy module."""

import collections

import numpy as np
import torch
from torch import nn


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Extractor(nn.Module):
    def __init__(self, model, names):
        super().__init__()
        self.model, self.features = model, collections.OrderedDict()
        for name in names:
            dict(model.named_modules())[name].register_forward_hook(self.keep(name))

    def keep(self, name):
        def hook(module, inputs, output):
            self.features[name] = output

        return hook

    def forward(self, x):
        self.model(x)
        return self.features


model = fill(
    nn.Sequential(
        collections.OrderedDict(conv=nn.Conv2d(1, 4, 3), act=nn.Softplus(), pool=nn.LPPool2d(2, 2), flat=nn.Flatten(), fc=nn.Linear(36, 3))
    )
)
rng = np.random.default_rng(0)
x, y = torch.tensor(rng.uniform(0, 1, (4, 1, 8, 8)), dtype=torch.float32), torch.tensor([0, 1, 2, 0])
for name, value in Extractor(model, ["conv", "pool"])(x).items():
    print(name, tuple(value.shape), f"{value.mean().item():.4f}")
order = []
model.fc.register_forward_pre_hook(lambda m, args: order.append("pre"))
model.fc.register_forward_hook(lambda m, args, kwargs, out: order.append("post") or out * 1.0, with_kwargs=True)
model.fc.register_full_backward_pre_hook(lambda m, g: order.append("backward pre"))
model.fc.register_full_backward_hook(lambda m, gi, go: order.append(f"backward {tuple(gi[0].shape)}"))
handle = torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: order.append(type(m).__name__))
nn.functional.cross_entropy(model(x), y).backward()
handle.remove()
print(order)


def fgsm(x, y, eps):
    x = x.clone().detach().requires_grad_(True)
    nn.functional.cross_entropy(model(x), y).backward()
    return torch.clamp(x + eps * x.grad.sign(), 0, 1).detach()


def pgd(x, y, eps, alpha, steps):
    start = x.clone()
    for _ in range(steps):
        x.requires_grad_()
        (g,) = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), x)
        x = torch.clamp(start + torch.clamp(x.detach() + alpha * g.sign() - start, -eps, eps), 0, 1)
    return x


with torch.no_grad():
    clean = nn.functional.cross_entropy(model(x), y, reduction="sum").item()
attacked = [nn.functional.cross_entropy(model(v), y, reduction="sum").item() for v in (fgsm(x, y, 0.1), pgd(x, y, 0.1, 0.03, 5))]
print(all(a > clean for a in attacked), [f"{a:.3f}" for a in attacked])
lazy = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
print(lazy[3].weight.__class__.__name__, tuple(lazy(x).shape), lazy[3])
print([n for n, _ in lazy.named_parameters()], sum(1 for _ in model.modules()))
