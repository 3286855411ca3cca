"""Tianshou: batches, a replay buffer, and a network's answers for them."""

import numpy as np
import torch
from tianshou.data import Batch, ReplayBuffer
from tianshou.utils.net.common import Net

torch.manual_seed(0)
rng = np.random.default_rng(0)
buffer = ReplayBuffer(size=20)
for step in range(25):
    buffer.add(
        Batch(
            obs=rng.standard_normal(4),
            act=step % 2,
            rew=float(step),
            terminated=step % 8 == 7,
            truncated=False,
            obs_next=rng.standard_normal(4),
            info={},
        )
    )
print("buffer", len(buffer), round(float(buffer.rew.sum()), 2))
batch, places = buffer.sample(6)
print("batch", batch.obs.shape, places.shape)
batch.to_torch_(dtype=torch.float32, device="cpu")
print("tensors", type(batch.obs).__name__, tuple(batch.obs.shape))
net = Net(state_shape=(4,), action_shape=2, hidden_sizes=(8, 8))
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.tensor(0.3 * rng.standard_normal(tuple(p.shape))))
values, _ = net(torch.tensor(rng.standard_normal((3, 4)), dtype=torch.float32))
print("values", *[round(float(v), 4) for v in values.flatten()])
values.pow(2).mean().backward()
print("gradients", round(float(sum(p.grad.norm() for p in net.parameters())), 4))
both = Batch.cat([Batch(a=torch.ones(2), b={"c": np.arange(2)}), Batch(a=torch.zeros(1), b={"c": np.arange(1)})])
print("joined", both.a.tolist(), both.b.c.tolist())
