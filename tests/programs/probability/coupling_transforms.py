"""Affine coupling layers as Transforms, trained by maximum likelihood through TransformedDistribution."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution, constraints
from torch.distributions.transforms import AffineTransform, ComposeTransform, SigmoidTransform, Transform

rng = np.random.RandomState(4)


class Coupling(Transform):
    domain = constraints.real_vector
    codomain = constraints.real_vector
    bijective = True

    def __init__(self, net, flip, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.net, self.flip = net, flip

    def with_cache(self, cache_size=1):
        return Coupling(self.net, self.flip, cache_size)

    def _parts(self, x):
        a, b = x.chunk(2, dim=-1)
        return (b, a) if self.flip else (a, b)

    def _join(self, a, b):
        return torch.cat([b, a] if self.flip else [a, b], dim=-1)

    def _shift_scale(self, a):
        shift, log_scale = self.net(a).chunk(2, dim=-1)
        return shift, torch.tanh(log_scale)

    def _call(self, x):
        a, b = self._parts(x)
        shift, log_scale = self._shift_scale(a)
        return self._join(a, b * log_scale.exp() + shift)

    def _inverse(self, y):
        a, b = self._parts(y)
        shift, log_scale = self._shift_scale(a)
        return self._join(a, (b - shift) * (-log_scale).exp())

    def log_abs_det_jacobian(self, x, y):
        a, _ = self._parts(x)
        return self._shift_scale(a)[1].sum(-1)


t = rng.rand(256) * np.pi
moons = np.concatenate([np.stack([np.cos(t), np.sin(t)], 1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], 1)]) + 0.05 * rng.randn(512, 2)
data = torch.from_numpy(moons.astype(np.float32))
nets = nn.ModuleList([nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2)) for _ in range(4)])
for p in nets.parameters():
    p.data = torch.from_numpy((0.3 * rng.randn(*p.shape)).astype(np.float32))
base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
transforms = [Coupling(net, k % 2 == 1) for k, net in enumerate(nets)]
flow = TransformedDistribution(base, transforms)
optimizer = torch.optim.Adam(nets.parameters(), lr=1e-2)
for step in range(60):
    loss = -flow.log_prob(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step} loss {loss.item():.3f}")
print(flow.batch_shape, flow.event_shape, flow.support, flow.has_rsample)
with torch.no_grad():
    x = flow.rsample((64,))
    together = ComposeTransform(transforms)
    z = together.inv(x)
    print("inverse of inverse:", bool((together(z) - x).abs().max() < 1e-4))
    print("log_prob by hand:", bool((base.log_prob(z) - together.log_abs_det_jacobian(z, x) - flow.log_prob(x)).abs().max() < 1e-3))
# a logistic distribution and one on (0, 1), put together from transforms
logistic = TransformedDistribution(torch.distributions.Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(loc=1.0, scale=2.0)])
v = torch.tensor([-2.0, 0.0, 3.0])
print([round(u, 4) for u in logistic.log_prob(v).tolist()], [round(u, 4) for u in logistic.cdf(v).tolist()])
print([round(u, 4) for u in logistic.icdf(torch.tensor([0.1, 0.5, 0.9])).tolist()])
unit = TransformedDistribution(Normal(0.0, 1.0), [SigmoidTransform()])
print(unit.support, round(unit.log_prob(torch.tensor(0.3)).item(), 4), unit.transforms[0].codomain)
