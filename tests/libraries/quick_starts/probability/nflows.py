"""Normalizing flows of nflows: masked autoregressive and coupling transforms of a normal distribution."""

import numpy as np
import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms import (
    AffineCouplingTransform,
    CompositeTransform,
    MaskedAffineAutoregressiveTransform,
    PiecewiseRationalQuadraticCouplingTransform,
    ReversePermutation,
)

torch.manual_seed(0)
x = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 3))).float()


def network(n_in, n_out):
    return ResidualNet(n_in, n_out, hidden_features=8, num_blocks=1)


kinds = {
    "autoregressive": lambda: MaskedAffineAutoregressiveTransform(3, 16),
    "coupling": lambda: AffineCouplingTransform(torch.tensor([1, 0, 1]), network),
    "spline": lambda: PiecewiseRationalQuadraticCouplingTransform(torch.tensor([1, 0, 1]), network, tails="linear", tail_bound=4.0),
}
for name, make in kinds.items():
    flow = Flow(CompositeTransform([t for _ in range(2) for t in (ReversePermutation(3), make())]), StandardNormal([3]))
    draw = np.random.default_rng(1).standard_normal
    with torch.no_grad():
        for p in flow.parameters():
            p.copy_(torch.from_numpy(draw(p.shape)) * 0.2)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for step in range(3):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, step, round(loss.item(), 4))
    noise = flow.transform_to_noise(x)
    back, _ = flow._transform.inverse(noise)
    print(name, "back", bool((back - x).abs().max() < 1e-3), tuple(flow.sample(5).shape))
