"""Optimizers that step shards: those that treat each element by itself. Others need a whole parameter, of which a process has some rows."""

from __future__ import annotations

from typing import Any

from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.ground.process import locks
from tritensor.optim.hooks import register_optimizer_step_pre_hook
from tritensor.optim.optimizers.adafactor import Adafactor
from tritensor.optim.optimizers.lbfgs import LBFGS
from tritensor.optim.optimizers.muon import Muon

_WHOLE = (Adafactor, LBFGS, Muon)
_registering = locks.lock()
_watched: list[Any] = []  # the hook, once it is there


def register_step_check() -> None:
    """From now on each step is looked at, of optimizers that are made of shards later."""
    with _registering:
        if not _watched:
            _watched.append(register_optimizer_step_pre_hook(refuse_shards))


def refuse_shards(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Raise NotImplementedError before an optimizer that mixes the elements of a parameter steps shards, of which it would see some rows."""
    # The hook sees the steps of all optimizers in the process.
    if not isinstance(optimizer, _WHOLE):
        return
    for group in optimizer.param_groups:
        for p in group["params"]:
            # Of one process the shard is the whole parameter.
            if isinstance(p, Sharded) and p.process_group is not None and p.process_group.size() > 1:
                name = type(optimizer).__name__
                raise NotImplementedError(
                    f"{name}.step: a parameter of {tuple(p.global_shape)} is a shard, rows {p.global_offset[0]} to "
                    f"{p.global_offset[0] + p.array.shape[0]} on this process, and {name} computes with whole ones; take an optimizer that treats each "
                    "element by itself (AdamW, SGD), or DistributedDataParallel with ZeroRedundancyOptimizer"
                )
