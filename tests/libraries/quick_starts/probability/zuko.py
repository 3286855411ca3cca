"""Normalizing flows: autoregressive ones, splines and one in continuous time, trained for a few steps."""

import numpy as np
import torch
import zuko

torch.manual_seed(0)
x = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 3))).float()
flows = {
    "maf": zuko.flows.MAF(3, transforms=2, hidden_features=(16, 16)),
    "nsf": zuko.flows.NSF(3, transforms=2, hidden_features=(16, 16)),
    "cnf": zuko.flows.CNF(3, hidden_features=(16,)),
}
for name, flow in flows.items():
    draw = np.random.default_rng(1).standard_normal
    with torch.no_grad():
        for p in flow.parameters():
            p.copy_(torch.from_numpy(draw(p.shape)) * 0.2)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for step in range(3):
        loss = -flow().log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, step, round(loss.item(), 4))
    z = flow().transform(x[:4])
    print(name, "back", bool((flow().transform.inv(z) - x[:4]).abs().max() < 1e-3), tuple(flow().sample((5,)).shape))
    again = type(flow)(3, **({"hidden_features": (16,)} if name == "cnf" else {"transforms": 2, "hidden_features": (16, 16)}))
    again.load_state_dict(flow.state_dict())
    print(name, "loaded", round(float(again().log_prob(x).mean().detach()), 4))
