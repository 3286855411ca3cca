"""Training steps for the GPU's tests: models small enough to be repeated ten thousand times, and LeNet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tritensor as tt
from bench.cpu.train import lenet as lenet_model
from tritensor import nn, optim


def closure(model: nn.Module, x: tt.Tensor, labels: tt.Tensor, lr: float = 0.05) -> Callable[[], tt.Tensor]:
    """One step of SGD with momentum as a function that returns the loss, on the device."""
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    def step() -> tt.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    step.model = model  # type: ignore[attr-defined]
    return step


def small(device: str, batch: int = 8) -> Callable[[], tt.Tensor]:
    """A perceptron 16-32-10 with dropout."""
    tt.manual_seed(3)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10)).to(device)
    rng = np.random.default_rng(0)
    x = tt.from_numpy(rng.standard_normal((batch, 16)).astype(np.float32)).to(device)
    return closure(model, x, tt.from_numpy(rng.integers(0, 10, batch)).to(device))


def lenet(device: str, batch: int = 16) -> Callable[[], tt.Tensor]:
    """LeNet on random images of 28 x 28."""
    tt.manual_seed(4)
    model = lenet_model(tt).to(device)
    rng = np.random.default_rng(1)
    x = tt.from_numpy(rng.standard_normal((batch, 1, 28, 28)).astype(np.float32)).to(device)
    return closure(model, x, tt.from_numpy(rng.integers(0, 10, batch)).to(device))
