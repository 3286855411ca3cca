"""Memory of sharded training: what the system says of each process, against the formulas of tritensor.distributed.fsdp."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from sharded_models import run

import tritensor as tt
from tritensor import nn
from tritensor.distributed.fsdp import fully_shard
from tritensor.distributed.optim import ZeroRedundancyOptimizer
from tritensor.nn.parallel import DistributedDataParallel

LAYERS, WIDTH = 8, 1120
PARAMETERS = LAYERS * (WIDTH + 1) * WIDTH
WHOLE = 4 * PARAMETERS  # bytes, 40 MB
STATES = 2  # AdamW's
WITHIN = 0.1


def anonymous(collect: bool = True) -> int:
    """Bytes of this process that no file backs."""
    if collect:
        gc.collect()
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))


class Layer(nn.Module):
    watched: list[int] | None = None  # gets what the process holds when backward comes to a layer's output

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        y = self.linear(x)
        if self.watched is not None:
            y.register_hook(lambda g: self.watched.append(anonymous(False)))
        return y.tanh()


def model_of(width: int) -> Any:
    tt.manual_seed(0)
    return nn.Sequential(*[Layer(width) for _ in range(LAYERS)])


Maker = Callable[[Any], tuple[Any, Any]]


def replicas(model: Any) -> tuple[Any, Any]:
    replica = DistributedDataParallel(model)
    return replica, tt.optim.AdamW(replica.parameters(), lr=0.01)


def owned_states(model: Any) -> tuple[Any, Any]:
    replica = DistributedDataParallel(model)
    return replica, ZeroRedundancyOptimizer(replica.parameters(), tt.optim.AdamW, lr=0.01)


def owned_gradients(model: Any) -> tuple[Any, Any]:
    return model, ZeroRedundancyOptimizer(model.parameters(), tt.optim.AdamW, shard_gradients=True, lr=0.01)


def shards(model: Any) -> tuple[Any, Any]:
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return model, tt.optim.AdamW(model.parameters(), lr=0.01)


def measured(make: Maker, width: int, seen: list[int] | None = None) -> int:
    """Bytes that training holds between two steps, gradients among them; `seen` gets what it holds at the end of forward and of backward."""
    before = anonymous()
    model, optimizer = make(model_of(width))
    x = tt.ones(2, width)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).sum()
        if seen is not None:
            seen[:1] = [anonymous() - before]
        loss.backward()
        optimizer.step()
    return anonymous() - before


def close(found: int, wanted: float, what: str) -> None:
    assert abs(found - wanted) <= WITHIN * wanted, f"{what}: {found / 1e6:.1f} MB, the formula says {wanted / 1e6:.1f} MB"


def formulas(rank: int, size: int) -> None:
    wanted: dict[Maker, float] = {
        replicas: (2 + STATES) * WHOLE,
        owned_states: (2 + STATES / size) * WHOLE,
        owned_gradients: (1 + (1 + STATES) / size) * WHOLE,
        shards: (2 + STATES) / size * WHOLE,
    }
    for make in wanted:
        measured(make, 16)  # what is loaded and compiled once
    for make, formula in wanted.items():
        seen: list[int] = []
        found = measured(make, WIDTH, seen)
        print(
            f"rank {rank} of {size}: {make.__name__} {found / 1e6:.1f} MB, formula {formula / 1e6:.1f} MB, end of forward {seen[0] / 1e6:.1f} MB"
        )
        close(found, formula, make.__name__)
        if make is shards:  # the graph is alive, and no whole parameter: shards and states, without gradients
            close(seen[0], (1 + STATES) / size * WHOLE, "end of forward")
    before, Layer.watched = anonymous(), []
    measured(shards, WIDTH)
    # Two whole layers and one that arrives, the gradient of one and what is sent of another; MPI's own buffers: two for a reduction, one to gather.
    bound = (2 + STATES) / size * WHOLE + 8 * WHOLE / LAYERS
    assert max(Layer.watched) - before <= bound * (1 + WITHIN), (max(Layer.watched) - before, bound)
    print(f"rank {rank} of {size}: at most {(max(Layer.watched) - before) / 1e6:.1f} MB in backward, bound {bound / 1e6:.1f} MB")


if __name__ == "__main__":
    run([formulas])
