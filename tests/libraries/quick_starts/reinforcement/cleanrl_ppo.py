"""CleanRL's way of PPO in one file: vectorised environments, an agent of two heads, clipped updates."""

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Categorical

torch.manual_seed(0)
np.random.seed(0)
torch.backends.cudnn.deterministic = True


def layer_init(layer: nn.Linear, std: float = np.sqrt(2), bias: float = 0.0) -> nn.Linear:
    """A layer with orthogonal weights."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    """A critic and an actor."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 32)), nn.Tanh(), layer_init(nn.Linear(32, 2), std=0.01))

    def act(self, x: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """An action, its log probability, the entropy, the value."""
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
agent, steps = Agent(), 32
optimizer = optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
obs, actions, logprobs, rewards, dones, values = (torch.zeros(steps, 2, *s) for s in ((4,), (), (), (), (), ()))
state, done = torch.Tensor(envs.reset(seed=0)[0]), torch.zeros(2)
for update in range(2):
    for step in range(steps):
        obs[step], dones[step] = state, done
        with torch.no_grad():
            action, logprob, _, value = agent.act(state)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        following, reward, terminated, truncated, _ = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).view(-1)
        state, done = torch.Tensor(following), torch.Tensor(np.logical_or(terminated, truncated))
    with torch.no_grad():
        advantages, last = torch.zeros_like(rewards), 0.0
        for t in reversed(range(steps)):
            left = 1.0 - (done if t == steps - 1 else dones[t + 1])
            after = agent.critic(state).flatten() if t == steps - 1 else values[t + 1]
            advantages[t] = last = rewards[t] + 0.99 * after * left - values[t] + 0.99 * 0.95 * left * last
        returns = advantages + values
    flat = [x.reshape(-1, *x.shape[2:]) for x in (obs, actions, logprobs, advantages, returns)]
    places = np.arange(2 * steps)
    for _ in range(2):
        np.random.shuffle(places)
        for start in range(0, len(places), 16):
            o, a, lp, adv, ret = (x[places[start : start + 16]] for x in flat)
            _, new, entropy, value = agent.act(o, a.long())
            ratio = (new - lp).exp()
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            loss = policy_loss - 0.01 * entropy.mean() + 0.5 * 0.5 * ((value.flatten() - ret) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print("update", update, "finite", bool(loss.isfinite()), "ratios near 1", bool((ratio - 1).abs().max() < 0.5))
logits = agent.actor(torch.zeros(1, 4))
print("probabilities", round(float(Categorical(logits=logits).probs.sum()), 4))
