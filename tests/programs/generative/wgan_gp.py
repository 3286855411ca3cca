"""A Wasserstein GAN with gradient penalty: a gradient of a gradient in every critic step."""

import numpy as np
import torch
from torch import autograd, nn, optim


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


netG = fill(nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 2)))
netD = fill(nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1)), 1)
optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
rng = np.random.default_rng(2)


def draw(n):
    return torch.tensor(rng.standard_normal((n, 2)), dtype=torch.float32)


def calc_gradient_penalty(netD, real, fake, lam=0.1):
    alpha = torch.tensor(rng.uniform(size=(real.size(0), 1)), dtype=torch.float32).expand(real.size())
    interpolates = autograd.Variable(alpha * real + (1 - alpha) * fake, requires_grad=True)
    out = netD(interpolates)
    gradients = autograd.grad(
        outputs=out, inputs=interpolates, grad_outputs=torch.ones(out.size()), create_graph=True, retain_graph=True, only_inputs=True
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * lam


for iteration in range(5):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(3):
        real = draw(32) * 0.1 + torch.tensor([1.0, -1.0])
        netD.zero_grad()
        with torch.no_grad():
            fake = netG(draw(32))
        d_real, d_fake = netD(real).mean(), netD(fake).mean()
        penalty = calc_gradient_penalty(netD, real, fake)
        (d_fake - d_real + penalty).backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    cost = -netD(netG(draw(32))).mean()
    cost.backward()
    optimizerG.step()
    print(f"{iteration}: W {(d_real - d_fake).item():.4f} penalty {penalty.item():.4f} G {cost.item():.4f}")
