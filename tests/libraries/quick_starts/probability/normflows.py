"""Normalizing flows of normflows: real NVP and a neural spline flow, trained towards two moons and by forward divergence."""

import normflows as nf
import numpy as np
import torch

torch.manual_seed(0)
x = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 2))).float()


def fill(model):
    draw = np.random.default_rng(1).standard_normal
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(draw(p.shape)) * 0.1)
    return model


layers = []
for _ in range(2):
    layers += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=True)), nf.flows.Permute(2, mode="swap")]
model = fill(nf.NormalizingFlow(nf.distributions.DiagGaussian(2), layers))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    loss = model.forward_kld(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("real nvp", step, round(loss.item(), 4))
sample, density = model.sample(7)
print("sample", tuple(sample.shape), tuple(density.shape))

spline = fill(
    nf.NormalizingFlow(nf.distributions.DiagGaussian(2, trainable=False), [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8)])
)
print("spline", round(spline.log_prob(x).mean().item(), 4))
moons = nf.distributions.TwoMoons()
print("moons", round(moons.log_prob(x).mean().item(), 4))
reverse = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), layers, moons).reverse_kld(32)
print("reverse finite", bool(torch.isfinite(reverse)))
