"""Deep Q-learning on a chain: replay memory, policy and target networks, gather, clipped gradients."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
device = torch.device("cuda" if torch.cuda.is_available() and False else "cpu")


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(list(self.memory), batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 24)
        self.layer2 = nn.Linear(24, n_actions)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


class Chain:
    def __init__(self, n=6):
        self.n = n

    def reset(self):
        self.at = 0
        return self.observe()

    def observe(self):
        return np.eye(self.n, dtype=np.float32)[self.at]

    def step(self, action):
        self.at = min(self.at + 1, self.n - 1) if action == 1 else 0
        done = self.at == self.n - 1
        return self.observe(), 1.0 if done else -0.01, done


random.seed(0)
rng = np.random.RandomState(3)
env = Chain()
policy_net, target_net = DQN(6, 2).to(device), DQN(6, 2).to(device)
for p in policy_net.parameters():
    nn.init.constant_(p, 0.0)
    p.data += torch.from_numpy(0.3 * rng.randn(*p.shape)).float()
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=False)
memory = ReplayMemory(500)
finished = 0
for episode in range(12):
    state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
    for t in range(15):
        if rng.rand() > 0.3:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[rng.randint(2)]], device=device, dtype=torch.long)
        observation, reward, done = env.step(action.item())
        next_state = None if done else torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
        memory.push(state, action, next_state, torch.tensor([reward], device=device))
        state = next_state
        if len(memory) >= 16:
            batch = Transition(*zip(*memory.sample(16)))
            non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool)
            non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
            state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
            state_action_values = policy_net(state_batch).gather(1, action_batch)
            next_state_values = torch.zeros(16, device=device)
            with torch.no_grad():
                next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
            expected = (next_state_values * 0.9) + reward_batch
            loss = nn.MSELoss()(state_action_values, expected.unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
            optimizer.step()
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * 0.1 + target[key] * 0.9
        target_net.load_state_dict(target)
        if done:
            finished += 1
            break
    if episode % 4 == 3:
        print(episode, finished, len(memory), f"{loss.item():.4f}")
print(policy_net(torch.eye(6)).argmax(1).tolist())
