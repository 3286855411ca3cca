"""Sharded modules that were built on device meta: they get memory behind fully_shard, or as FullyShardedDataParallel is told, and train."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tests.distributed.ranks import succeed
from tritensor import nn
from tritensor.distributed.fsdp import FullyShardedDataParallel, fully_shard
from tritensor.distributed.fsdp.wrap import ModuleWrapPolicy


@pytest.fixture
def world() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def build() -> nn.Sequential:
    with tt.device("meta"):
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))


def falls(net: nn.Module) -> bool:
    optimizer = tt.optim.AdamW(net.parameters(), lr=0.05)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = net(tt.ones(3, 8)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0]


def test_fully_shard_then_memory(world: None) -> None:
    net = build()
    for part in (net[0], net[2], net):
        fully_shard(part)
    shards = list(net.parameters())
    assert all(p.is_meta for p in shards)
    assert net.to_empty(device="cpu") is net
    assert list(map(id, net.parameters())) == list(map(id, shards))  # shards stay what their groups hold
    assert not any(p.is_meta for p in shards)
    for part in (net[0], net[2]):
        part.reset_parameters()
    assert falls(net)


def test_a_whole_state_is_loaded(world: None) -> None:
    net, full = build(), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    fully_shard(net)
    net.to_empty(device="cpu")
    net.load_state_dict(full.state_dict())
    assert tt.equal(net(tt.ones(3, 8)), full(tt.ones(3, 8)))


def test_fully_sharded_data_parallel_gives_memory(world: None) -> None:
    tt.manual_seed(0)
    plain = FullyShardedDataParallel(build(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=tt.device("cpu"))
    assert not any(p.is_meta for p in plain.parameters())
    assert falls(plain)
    seen = []

    def init(module: nn.Module) -> None:
        seen.append(type(module).__name__)
        module.to_empty(device="cpu", recurse=False)
        for p in module.parameters(recurse=False):
            nn.init.constant_(p, 0.25)

    told = FullyShardedDataParallel(build(), param_init_fn=init)
    assert seen == ["Sequential", "Linear", "ReLU", "Linear"]
    assert all((p == 0.25).all() for p in told.parameters())
    kept = nn.Linear(2, 2)
    assert tt.equal(FullyShardedDataParallel(kept, param_init_fn=init).module.weight, kept.weight)  # nothing of it is on device meta
    with pytest.raises(ValueError, match="param_init_fn is 3"):
        FullyShardedDataParallel(build(), param_init_fn=3)


def test_a_module_that_cannot_initialise_itself(world: None) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tt.empty(2, device="meta"))

    with pytest.warns(UserWarning, match="a Own on device meta could not be initialised"), pytest.raises(AttributeError):
        FullyShardedDataParallel(Own(), device_id=tt.device("cpu"))


def test_messages_have_values(world: None) -> None:
    with pytest.raises(tt.errors.MetaError, match="all_reduce: a message has values"):
        dist.all_reduce(tt.ones(2, device="meta"))


@pytest.mark.standard
def test_on_two_ranks() -> None:
    succeed("shards_of_meta.py", 2)
