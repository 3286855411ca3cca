"""Stable-Baselines3: PPO, A2C, DQN and SAC on small tasks; an agent that is saved, loaded and evaluated."""

import tempfile

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.evaluation import evaluate_policy

torch.manual_seed(0)
for kind, task, settings in (
    (PPO, "CartPole-v1", {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
    (A2C, "CartPole-v1", {}),
    (DQN, "CartPole-v1", {"learning_starts": 50, "train_freq": 4}),
    (SAC, "Pendulum-v1", {"learning_starts": 50, "batch_size": 32}),
):
    model = kind("MlpPolicy", task, seed=0, device="cpu", policy_kwargs={"net_arch": [16]}, **settings)
    before = {name: p.detach().clone() for name, p in model.policy.named_parameters()}
    model.learn(total_timesteps=256 if kind is not SAC else 90)
    moved = sum(not torch.equal(p, before[name]) for name, p in model.policy.named_parameters())
    print(
        kind.__name__,
        len(before),
        "parameters, most of them moved",
        moved > len(before) // 3,
        "finite",
        all(bool(p.isfinite().all()) for p in before.values()),
    )
    observation, _ = gym.make(task).reset(seed=1)
    action, _ = model.predict(observation, deterministic=True)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/agent")
        again = kind.load(f"{folder}/agent", device="cpu")
    print(kind.__name__, "acts as before", np.allclose(action, again.predict(observation, deterministic=True)[0]))
mean, _ = evaluate_policy(PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu"), gym.make("CartPole-v1"), n_eval_episodes=2, warn=False)
print("evaluated", mean > 0)
