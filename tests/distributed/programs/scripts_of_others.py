"""Calls of public scripts on sharded models besides training: wrapping by hand, checkpointed modules, optimizers' states by name, placements."""

from __future__ import annotations

import functools
import sys
import warnings
from copy import deepcopy
from typing import Any

import pytest
from sharded_models import Mlp, batches, same

import tritensor as tt
import tritensor.distributed as dist
import tritensor.distributed.checkpoint as dcp
from tritensor import nn
from tritensor.distributed import fsdp
from tritensor.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from tritensor.distributed.checkpoint.state_dict import _init_optim_state, get_model_state_dict, get_state_dict
from tritensor.distributed.fsdp import FullyShardedDataParallel, fully_shard
from tritensor.distributed.fsdp.wrap import ModuleWrapPolicy, _or_policy, enable_wrap, lambda_auto_wrap_policy, wrap

FULL, SHARDED = fsdp.StateDictType.FULL_STATE_DICT, fsdp.StateDictType.SHARDED_STATE_DICT


def trained(model: nn.Module, optimizer: Any, steps: int = 3) -> None:
    for _, (x, y) in zip(range(steps), batches(10), strict=False):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def wrapped(rank: int, size: int) -> None:
    """wrap makes wrappers inside of enable_wrap alone; a wrapper is printed, and asked for, under its own name."""
    layer = nn.Linear(3, 2)
    assert wrap(layer) is layer
    model = Mlp()
    strategy = fsdp.ShardingStrategy.SHARD_GRAD_OP
    with enable_wrap(wrapper_cls=FullyShardedDataParallel, sharding_strategy=strategy):
        model.layers[0] = wrap(model.layers[0])
        model.layers[3] = wrap(model.layers[3], sharding_strategy=fsdp.ShardingStrategy.FULL_SHARD)
    assert wrap(layer) is layer
    assert model.layers[0].sharding_strategy is strategy
    assert model.layers[3].sharding_strategy is not strategy
    assert type(model.layers[0]).__name__ == "FullyShardedDataParallel"
    assert "(0): FullyShardedDataParallel(\n" in repr(model)
    assert "FSDPFully" not in repr(model)
    assert repr(fully_shard(Mlp())).startswith("FSDPMlp(")
    gelu = functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.LayerNorm))
    either = functools.partial(_or_policy, policies=[gelu, ModuleWrapPolicy({nn.Linear})])
    found = FullyShardedDataParallel(Mlp(), auto_wrap_policy=either)
    assert len(FullyShardedDataParallel.fsdp_modules(found)) == 5


def checkpointed(rank: int, size: int) -> None:
    """Checkpointed modules compute the same, under the same names, inside of shards and around them."""
    plain = Mlp()
    optimizer = tt.optim.AdamW(plain.parameters(), lr=1e-2)
    trained(plain, optimizer)
    linear = lambda m: isinstance(m, nn.Linear)  # noqa: E731
    for impl in CheckpointImpl:
        model = Mlp()
        apply_activation_checkpointing(model, functools.partial(checkpoint_wrapper, checkpoint_impl=impl), linear)
        inner = model.layers[3]
        assert isinstance(inner, CheckpointWrapper)
        assert inner.out_features == 30
        assert [n for n, _ in inner.named_parameters()] == ["weight", "bias"]
        assert list(model.state_dict()) == list(plain.state_dict())
        for layer in model.parts():
            fully_shard(layer)
        fully_shard(model)
        with warnings.catch_warnings():  # the first layer's input asks for no gradient, of which the old form warns
            warnings.simplefilter("ignore")
            if impl is CheckpointImpl.NO_REENTRANT:
                trained(model, tt.optim.AdamW(model.parameters(), lr=1e-2))
                same(fsdp.full_state_dict(model), plain.state_dict(), 1e-9)
    outside = Mlp()
    outside.layers[0] = checkpoint_wrapper(FullyShardedDataParallel(outside.layers[0]))
    assert list(get_model_state_dict(outside)) == list(plain.state_dict())
    outside.load_state_dict(plain.state_dict())
    same(outside.state_dict(), plain.state_dict(), 0.0)


def keywords(rank: int, size: int) -> None:
    """Both forms pass keyword arguments, and a function of one's own is called with its settings."""

    class Scaled(nn.Linear):
        def forward(self, x: tt.Tensor, by: float = 1.0) -> tt.Tensor:
            return super().forward(x) * by

    layer, x = Scaled(3, 2), tt.ones(4, 3, requires_grad=True)
    for impl in CheckpointImpl:
        layer.zero_grad()
        checkpoint_wrapper(layer, impl)(x, by=2.0).sum().backward()
        assert layer.bias.grad.tolist() == [8.0, 8.0]
    seen: list[Any] = []

    def own(module: nn.Module, *args: Any, word: str, **kwargs: Any) -> Any:
        seen.append((word, kwargs))
        return module(*args, **kwargs)

    checkpoint_wrapper(layer, checkpoint_fn=own, word="w")(x, by=3.0)
    assert seen == [("w", {"by": 3.0})]


def optimizers(rank: int, size: int) -> None:
    """An optimizer's state by names, whole and in parts, is what another one goes on with."""
    names = list(Mlp().state_dict())
    model = FullyShardedDataParallel(Mlp(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    optimizer = tt.optim.AdamW(model.parameters(), lr=1e-2)
    trained(model, optimizer)
    whole = deepcopy(FullyShardedDataParallel.optim_state_dict(model, optimizer))
    assert list(whole["state"]) == names
    assert whole["param_groups"][0]["params"] == names
    assert whole["state"]["layers.0.weight"]["exp_avg"].shape == (41, 10)
    first = deepcopy(FullyShardedDataParallel.full_optim_state_dict(model, optimizer))
    assert bool(first) == (rank == 0)
    with FullyShardedDataParallel.state_dict_type(model, SHARDED):
        parts = deepcopy(FullyShardedDataParallel.optim_state_dict(model, optimizer))
    assert parts["state"]["layers.0.weight"]["exp_avg"].global_shape == (41, 10)
    weights = model.state_dict()
    trained(model, optimizer)
    ways = [
        lambda m, o: FullyShardedDataParallel.optim_state_dict_to_load(m, o, whole),
        lambda m, o: FullyShardedDataParallel.optim_state_dict_to_load(m, o, parts, load_directly=True),
        lambda m, o: FullyShardedDataParallel.shard_full_optim_state_dict(whole, m, optim=o),
        lambda m, o: FullyShardedDataParallel.scatter_full_optim_state_dict(first or None, m, optim=o),
    ]
    for way in ways:
        again = FullyShardedDataParallel(Mlp())
        again.load_state_dict(weights)
        other = tt.optim.AdamW(again.parameters(), lr=1.0)
        other.load_state_dict(way(again, other))
        assert other.param_groups[0]["lr"] == 1e-2
        trained(again, other)
        same(again.state_dict(), model.state_dict(), 0.0)
    alone = fsdp.FullOptimStateDictConfig(rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, FULL, None, alone):
        assert bool(FullyShardedDataParallel.optim_state_dict(model, optimizer)) == (rank == 0)
    assert FullyShardedDataParallel.optim_state_dict(model, optimizer)
    with pytest.raises(ValueError, match="give optim="):
        FullyShardedDataParallel.scatter_full_optim_state_dict(first, model)


def ahead(rank: int, size: int) -> None:
    """What a module is told to gather is on its way while it is used, from the first iteration on, and what is not used is given back."""
    model = nn.Sequential(*[fully_shard(nn.Linear(6, 6)) for _ in range(5)])
    fully_shard(model)
    layers = list(model)
    groups, seen = [layer._sharding.group for layer in layers], []
    for i, layer in enumerate(layers):
        layer.set_modules_to_forward_prefetch(layers[i + 1 : i + 3])
        layer.set_modules_to_backward_prefetch(layers[max(i - 2, 0) : i][::-1])

    def look(i: int, *given: Any) -> None:
        seen.append((i, [k for k, g in enumerate(groups) if g.is_coming]))

    for i, layer in enumerate(layers):
        layer.register_forward_pre_hook(functools.partial(look, i))
        layer.register_forward_hook(lambda m, args, y, i=i: y.register_hook(functools.partial(look, i)) and None)
    forward = [(i, [k for k in (i + 1, i + 2) if k < 5]) for i in range(5)]
    backward = [(i, [k for k in (i - 2, i - 1) if k >= 0]) for i in reversed(range(5))]
    for _ in range(3):
        seen.clear()
        model(tt.ones(2, 6)).sum().backward()
        assert seen == forward + backward, seen
    layers[4].set_modules_to_forward_prefetch(layers[:1])  # it was used, and is not again
    model(tt.ones(2, 6)).sum().backward()
    assert not any(g.is_coming or g.is_whole for g in groups)
    with pytest.raises(ValueError, match="Linear is not sharded"):
        layers[0].set_modules_to_forward_prefetch([nn.Linear(1, 1)])


def named(rank: int, size: int) -> None:
    """Placements under the path where PyTorch has them; a state that is made before the first step; save and load under older names."""
    from tritensor.distributed.tensor import Shard

    model = fully_shard(Mlp())
    (placement,) = next(model.parameters()).placements
    assert placement == Shard(0)
    assert isinstance(placement, Shard)
    assert placement.is_shard()
    assert placement.is_shard(0)
    assert not placement.is_shard(1)
    assert not placement.is_replicate()
    assert not placement.is_partial()
    before = fsdp.full_state_dict(model)
    optimizer = tt.optim.Adam(model.parameters(), lr=1e-2)
    _init_optim_state(optimizer)
    assert len(optimizer.state_dict()["state"]) == len(before)
    assert optimizer.param_groups[0]["lr"] == 1e-2
    same(fsdp.full_state_dict(model), before, 0.0)


def parts(rank: int, size: int) -> None:
    """A checkpoint of a sharded model and its optimizer, as public recipes save it."""
    model = fully_shard(Mlp())
    optimizer = tt.optim.Adam(model.parameters(), lr=1e-2)
    trained(model, optimizer)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    dcp.save({"app": {"model": of_model, "optim": of_optimizer}}, checkpoint_id=sys.argv[2])


def unawaited(rank: int, size: int) -> None:
    """A process group ends while saves go on behind the program: they come to their end first."""
    model = fully_shard(nn.Linear(600, 600))
    futures = [dcp.async_save({"model": model.state_dict()}, checkpoint_id=f"{sys.argv[2]}/{i}") for i in range(6)]
    dist.destroy_process_group()
    assert all(f.done() for f in futures)
    assert len({*futures[-1].result().files()}) == size
    dist.init_process_group("mpi")


def saved(rank: int, size: int) -> None:
    """save_state_dict and load_state_dict are save and load."""
    folder = sys.argv[2]
    dcp.save_state_dict({"a": tt.arange(3), "n": 4}, dcp.FileSystemWriter(folder))
    found = {"a": tt.zeros(3, dtype=tt.int64), "n": 0}
    dcp.load_state_dict(found, dcp.FileSystemReader(folder))
    assert found["a"].tolist() == [0, 1, 2]
    assert found["n"] == 4


dist.init_process_group("mpi")
globals()[sys.argv[1]](dist.get_rank(), dist.get_world_size())
print(f"rank {dist.get_rank()} done", flush=True)
