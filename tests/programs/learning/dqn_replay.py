"""A dueling double DQN: replay buffer of named tuples, a target network with soft updates, Huber loss, value clipping of gradients."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.advantage, self.value = nn.Linear(4, 24), nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.layer1(x))
        a = self.advantage(x)
        return self.value(x) + a - a.mean(dim=-1, keepdim=True)


random.seed(0)
rng = np.random.default_rng(0)
policy_net, target_net = fill(DQN()), DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
memory = deque([], maxlen=200)
state = torch.tensor(rng.standard_normal((1, 4)), dtype=torch.float32)
for step in range(60):
    with torch.no_grad():
        action = (
            policy_net(state).max(1).indices.view(1, 1) if rng.uniform() > 0.3 else torch.tensor([[int(rng.integers(3))]], dtype=torch.long)
        )
    reward = torch.tensor([float(state[0, action.item()])])
    following = None if step % 10 == 9 else torch.tensor(rng.standard_normal((1, 4)), dtype=torch.float32)
    memory.append(Transition(state, action, following, reward))
    state = following if following is not None else torch.zeros(1, 4)
    if len(memory) < 16:
        continue
    batch = Transition(*zip(*random.sample(memory, 16)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    following_states = torch.cat([s for s in batch.next_state if s is not None])
    q = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    values = torch.zeros(16)
    with torch.no_grad():
        best = policy_net(following_states).argmax(1, keepdim=True)
        values[mask] = target_net(following_states).gather(1, best).squeeze(1)
    expected = values * 0.5 + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target, source = target_net.state_dict(), policy_net.state_dict()
    for key in source:
        target[key] = source[key] * 0.05 + target[key] * 0.95
    target_net.load_state_dict(target)
    if step % 15 == 0:
        print(f"{step} {loss.item():.4f}")
print(f"{q.mean().item():.3f}", len(memory))
