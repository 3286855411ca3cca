"""optuna: a search over a network's learning rate and width, with pruning of bad trials."""

import numpy as np
import optuna
import torch
from torch import nn

optuna.logging.set_verbosity(optuna.logging.WARNING)
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((64, 3)).astype(np.float32))
y = (x[:, :1] * x[:, 1:2]).tanh()


def objective(trial):
    rate = trial.suggest_float("rate", 1e-3, 1e-1, log=True)
    width = trial.suggest_categorical("width", [4, 8])
    model = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(np.random.default_rng(p.numel()).standard_normal(tuple(p.shape)).astype(np.float32) * 0.3))
    optimizer = getattr(torch.optim, trial.suggest_categorical("optimizer", ["Adam", "SGD"]))(model.parameters(), lr=rate)
    for step in range(10):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trial.report(loss.item(), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
study.optimize(objective, n_trials=8)
print("best", round(study.best_value, 4), study.best_params["width"], study.best_params["optimizer"], round(study.best_params["rate"], 5))
print("states", sorted(t.state.name for t in study.trials))


def tensor_objective(trial):
    return (torch.tensor(trial.suggest_float("a", -1, 1)) - 0.25) ** 2


found = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
found.optimize(tensor_objective, n_trials=20)
print("a tensor as the value", type(found.best_value).__name__, abs(found.best_params["a"] - 0.25) < 0.3)
