"""A small training run for the tests: a model with dropout and batch norm, augmented data, everything that draws random numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn, optim
from tritensor.data import DataLoader, Dataset
from tritensor.training import Callback, Trainer

SAMPLES, SIZE, BATCHES = 14, 4, 4  # the last batch is smaller


class Noisy(Dataset[Any]):
    """Points with a class; each reading draws from all three generators."""

    def __init__(self) -> None:
        self.x = tt.randn(SAMPLES, 4, generator=tt.Generator().manual_seed(3))

    def __getitem__(self, i: int) -> Any:
        noise = 0.1 * tt.randn(4) + np.random.randn() * 0.1 + random.gauss(0, 0.1)
        return self.x[i] + noise.float(), int(self.x[i].sum() > 0)

    def __len__(self) -> int:
        return SAMPLES


class Draws(Callback):
    """Counts steps, and draws in the training itself."""

    def __init__(self) -> None:
        self.sum = 0.0

    def on_batch_end(self, trainer: Trainer) -> None:
        self.sum += float(np.random.randn() + random.gauss(0, 1) + tt.rand(()).item())

    def state_dict(self) -> dict[str, Any]:
        return {"sum": self.sum}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.sum = state_dict["sum"]


def seeded(seed: int = 0) -> None:
    tt.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 2))


def trainer(folder: Path | None = None, callbacks: Any = (), model: Any = None, rate: float = 0.05, **changed: Any) -> Trainer:
    seeded()
    model = network() if model is None else model
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    given: dict[str, Any] = {
        "epochs": 3,
        "scheduler": optim.lr_scheduler.StepLR(optimizer, 1, 0.7),
        "metrics": {"accuracy": lambda out, y: (out.argmax(1) == y).float().mean()},
        "progress": False,
    }
    return Trainer(model, optimizer, F.cross_entropy, checkpoint=folder, callbacks=[Draws(), *callbacks], **(given | changed))


def loaders(**changed: Any) -> tuple[DataLoader, DataLoader]:
    return DataLoader(Noisy(), **({"batch_size": SIZE, "shuffle": True} | changed)), DataLoader(Noisy(), batch_size=8)
