"""Models, batches and training loops that the programs on sharding share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.fsdp import fully_shard
from tritensor.nn import functional as F

STEPS, BATCH = 20, 24


class Mlp(nn.Module):
    """Sizes that no number of processes divides, and a last layer of fewer rows than there are processes."""

    width = 10

    def __init__(self, dtype: Any = tt.float64) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(10, 41), nn.GELU(), nn.LayerNorm(41), nn.Linear(41, 30), nn.Tanh(), nn.Linear(30, 3)).to(
            dtype
        )

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.layers(x)

    def parts(self) -> list[nn.Module]:
        return [self.layers[0], self.layers[3]]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.drive_in_background = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.drive_in_background(x))))


class Former(nn.Module):
    """A small transformer, whose embedding is used once more at its end."""

    width = 6  # tokens of a row

    def __init__(self, dtype: Any = tt.float64) -> None:
        super().__init__()
        tt.manual_seed(1)
        self.embedding = nn.Embedding(13, 8)
        self.blocks = nn.ModuleList([Block(8) for _ in range(3)])
        self.norm = nn.LayerNorm(8)
        self.to(dtype)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        x = self.embedding((x.abs() * 4).long() % 13)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight).mean(1)[:, :3]

    def parts(self) -> list[nn.Module]:
        return list(self.blocks)


OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sgd": (tt.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "adamw": (tt.optim.AdamW, {"lr": 0.01}),
}


def batches(width: int, dtype: Any = tt.float64) -> list[tuple[tt.Tensor, tt.Tensor]]:
    rng = np.random.default_rng(7)
    made = [(rng.standard_normal((BATCH, width)), rng.standard_normal((BATCH, 3))) for _ in range(STEPS)]
    return [(tt.tensor(x, dtype=dtype), tt.tensor(y, dtype=dtype)) for x, y in made]


def part(rank: int, size: int) -> slice:
    n = BATCH // size
    return slice(rank * n, (rank + 1) * n)


def train(model: nn.Module, optimizer: Any, data: Iterable[tuple[tt.Tensor, tt.Tensor]], share: slice = slice(None)) -> None:
    for x, y in data:
        optimizer.zero_grad()
        F.mse_loss(model(x[share]), y[share]).backward()
        optimizer.step()


def sharded(kind: Any, nested: bool = True, **settings: Any) -> Any:
    model = kind()
    for one in model.parts() if nested else ():
        fully_shard(one, **settings)
    return fully_shard(model, **settings)


def optimizer_of(model: nn.Module, how: str) -> Any:
    made, settings = OPTIMIZERS[how]
    return made(model.parameters(), **settings)


def alone(kind: Any, how: str) -> dict[str, tt.Tensor]:
    """What one process with the big batch comes to."""
    model = kind()
    made, settings = OPTIMIZERS[how]
    train(model, made(model.parameters(), **settings), batches(kind.width))
    return model.state_dict()


def same(found: dict[str, tt.Tensor], wanted: dict[str, tt.Tensor], within: float) -> None:
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert found[name].shape == value.shape, (name, found[name].shape, value.shape)
        gap = (found[name] - value).abs().max().item()
        assert gap <= within, f"{name} differs by {gap}"


def run(checks: Iterable[Callable[[int, int], None]], names: Sequence[str] | None = None) -> None:
    """The checks that are named, on the command line unless they are given, or all."""
    known = {f.__name__: f for f in checks}
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for name in (sys.argv[1:] if names is None else names) or known:
        known[name](rank, size)
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)
