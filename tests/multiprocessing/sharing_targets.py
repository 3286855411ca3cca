"""Functions that the tests of shared memory run in other processes: those of a module, as spawned processes need them."""

from __future__ import annotations

import os
import time
from typing import Any

import tritensor as tt


class Named(tt.Tensor):
    """A subclass with an attribute of its own."""


def write(found: Any, back: Any) -> None:
    """Write to what comes, tell what was there."""
    for x in iter(found.get, None):
        before = x.detach().float().sum().item()
        x.detach().fill_(2)
        back.put(
            (before, str(x.dtype), tuple(x.shape), x.stride(), x.requires_grad, type(x).__name__, getattr(x, "label", None), x.is_shared())
        )


def give(pipe: Any) -> None:
    """Send a tensor, wait until it was taken."""
    x = tt.arange(10_000.0)
    pipe.send((x, x[5:].reshape(5, -1)))
    pipe.recv()
    pipe.send(x[0].item())
    pipe.recv()


def leave(pipe: Any) -> None:
    """Send a tensor and end at once."""
    pipe.send(tt.arange(10.0))
    os._exit(0)


def add(x: tt.Tensor) -> tt.Tensor:
    x += 1
    return x * 2


def mark(i: int, x: tt.Tensor) -> None:
    x[i] = i + 1


def train(i: int, model: Any, steps: int) -> None:
    """Hogwild: every process steps the same parameters."""
    tt.manual_seed(i)
    optimizer = tt.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        x = tt.randn(16, 3)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()


def fail(i: int, way: str) -> None:
    if i == 1:
        if way == "raise":
            raise ValueError("the second")
        os.kill(os.getpid(), int(way)) if way.isdigit() else os._exit(4)
    time.sleep(90)


def echo(x: Any) -> Any:
    return x
