"""Training steps on the CPU, forward, backward and optimizer, ours beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np

import tritensor as tt
from bench.timing import line, paired, torch_or_none


def lenet(t: Any) -> Any:
    """LeNet for 28 x 28 images, from the given library."""
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def mlp(t: Any) -> Any:
    """784-512-512-10, from the given library."""
    nn = t.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def step(t: Any, make: Any, shape: tuple[int, ...], optimizer: str) -> Any:
    """A closure that does one training step of a model built from library `t`."""
    rng = np.random.default_rng(0)
    model, loss_of = make(t), t.nn.CrossEntropyLoss()
    x = t.from_numpy(rng.standard_normal(shape).astype(np.float32))
    labels = t.from_numpy(rng.integers(0, 10, shape[0]))
    opt = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9) if optimizer == "SGD" else t.optim.Adam(model.parameters(), lr=1e-3)

    def run() -> None:
        opt.zero_grad()
        loss = loss_of(model(x), labels)
        loss.backward()
        opt.step()

    return run


def main() -> None:
    torch = torch_or_none(1)
    print("one training step (forward, backward, optimizer), float32, batch 64, one thread (set OPENBLAS_NUM_THREADS=1)")
    for label, make, shape, optimizer in (
        ("LeNet 28x28, SGD with momentum", lenet, (64, 1, 28, 28), "SGD"),
        ("LeNet 28x28, Adam", lenet, (64, 1, 28, 28), "Adam"),
        ("MLP 784-512-512-10, SGD with momentum", mlp, (64, 784), "SGD"),
        ("MLP 784-512-512-10, Adam", mlp, (64, 784), "Adam"),
    ):
        peer = step(torch, make, shape, optimizer) if torch else None
        print(line(label, paired(step(tt, make, shape, optimizer), peer, seconds=6.0), 1e3, "ms"))
