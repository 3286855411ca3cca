"""States of sharded models and their optimizers by other ways than their own: summoned, by plain names, in checkpoints; and hooks on shards."""

from __future__ import annotations

import functools
import io
import math
import sys
from typing import Any

import numpy as np
import pytest
from sharded_models import Mlp, batches, optimizer_of, run, same, sharded

import tritensor as tt
import tritensor.distributed as dist
import tritensor.distributed.checkpoint as dcp
from tritensor import nn
from tritensor.distributed import fsdp
from tritensor.distributed.checkpoint import state_dict as sd
from tritensor.distributed.fsdp import FullyShardedDataParallel, full_state_dict, fully_shard
from tritensor.distributed.fsdp.wrap import ModuleWrapPolicy
from tritensor.distributed.optim import ZeroRedundancyOptimizer
from tritensor.distributed.tensor import DTensor


def summoned(rank: int, size: int) -> None:
    """What is changed in whole parameters is kept, whatever is asked of the model meanwhile; they have the shards' type."""
    mixed = fsdp.MixedPrecision(param_dtype=tt.bfloat16)
    plain = Mlp(tt.float32).state_dict()
    for policy in (None, ModuleWrapPolicy({nn.Linear})):
        model = FullyShardedDataParallel(Mlp(tt.float32), mixed_precision=mixed, auto_wrap_policy=policy)
        with FullyShardedDataParallel.summon_full_params(model):
            assert {p.dtype for p in model.parameters()} == {tt.float32}
            same(model.state_dict(), plain, 0.0)
            model.layers[2].bias.data.fill_(3.0)
            assert [n for n, _ in model.named_parameters()] == list(plain)
            x = batches(10, tt.float32)[0][0]
            with pytest.raises(RuntimeError, match="inside summon_full_params"):
                model(x)
            reference = Mlp(tt.float32)
            reference.load_state_dict({**plain, "layers.2.bias": tt.full((41,), 3.0)})
            with tt.no_grad():
                assert tt.allclose(model(x), reference(x), atol=1e-6)
            with (
                pytest.raises(RuntimeError, match="summon_full_params inside of"),
                FullyShardedDataParallel.summon_full_params(model),
            ):
                pass
            same(model.state_dict(), {**plain, "layers.2.bias": tt.full((41,), 3.0)}, 0.0)
        same(model.state_dict(), {**plain, "layers.2.bias": tt.full((41,), 3.0)}, 0.0)
        with FullyShardedDataParallel.summon_full_params(model, writeback=False):
            model.layers[2].bias.data.fill_(4.0)
        assert model.state_dict()["layers.2.bias"][0].item() == 3.0


class Scaled(nn.Module):
    """Notes the types that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.seen = nn.Parameter(tt.ones(3)), []
        self.register_buffer("shift", tt.zeros(3))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.seen.append(x.dtype)
        return x * self.scale + self.shift


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(4, 3), inner
        self.register_buffer("bias", tt.zeros(3))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.inner(self.first(x).float() + self.bias)


def cast(rank: int, size: int) -> None:
    """Inputs are cast at the root, and below only where it is asked for; states keep the buffers' types; a factor is of one group."""
    for below in (False, True):
        mixed = fsdp.MixedPrecision(tt.bfloat16, buffer_dtype=tt.bfloat16, cast_forward_inputs=below)
        inner = Scaled()
        model = FullyShardedDataParallel(Outer(FullyShardedDataParallel(inner, mixed_precision=mixed)), mixed_precision=mixed)
        model(tt.ones(2, 4)).sum().backward()
        assert inner.seen == [tt.bfloat16 if below else tt.float32]
        assert inner.shift.dtype == tt.bfloat16
        assert {v.dtype for v in model.state_dict().values()} == {tt.float32}
    model, plain = Pair(), Pair()
    fully_shard(model.one)
    fully_shard(model)
    model.set_gradient_divide_factor(1.0)
    for m in (model, plain):
        m(tt.ones(3, 4)).sum().backward()
    for part, factor in (("one", 1), ("two", size)):
        found, wanted = (getattr(m, part).weight.grad for m in (model, plain))
        assert tt.allclose(found.full_tensor(), wanted * factor, atol=1e-5)


def hooks(rank: int, size: int) -> None:
    """Hooks on shards see the reduced gradient, once in each backward, also of parameters that other processes use."""
    model, plain = sharded(Mlp), Mlp()
    x = batches(10)[0][0]
    seen: list[str] = []

    def step(name: str, p: Any) -> None:
        seen.append(name)
        p.data.add_(p.grad.to_local(), alpha=-0.1)
        p.grad = None

    for name, p in model.named_parameters():
        p.register_post_accumulate_grad_hook(functools.partial(step, name))
    optimizer = tt.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(2):
        seen.clear()
        model(x).pow(2).mean().backward()
        assert sorted(seen) == sorted(n for n, _ in plain.named_parameters())
        optimizer.zero_grad()
        plain(x).pow(2).mean().backward()
        optimizer.step()
    same(full_state_dict(model), plain.state_dict(), 1e-12)
    pair = fully_shard(Pair())
    called = []
    pair.two.weight.register_post_accumulate_grad_hook(lambda p: called.append(p.grad.to_local().tolist()))
    pair(tt.ones(1, 4), both=rank > 0).sum().backward()  # process 0 does not use it
    assert len(called) == 1


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: tt.Tensor, both: bool = True) -> tt.Tensor:
        return self.two(self.one(x)) if both else self.one(x)


class Again(nn.Module):
    """One module in three places."""

    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.one = nn.Linear(4, 4)
        self.two, self.three = self.one, nn.Sequential(self.one, nn.Linear(4, 4))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.three(self.two(self.one(x)))


def places(rank: int, size: int) -> None:
    """A group whose modules are called in another order than they were given in, and after an error; a module in several places."""
    x = tt.ones(3, 4)
    model, plain = Pair(), Pair()
    fully_shard([model.two, model.one])
    fully_shard(model)
    handle = model.two.register_forward_pre_hook(lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(x)
    handle.remove()
    for m in (model, plain):
        m(x).pow(2).sum().backward()
    assert model.one.weight.shape != plain.one.weight.shape
    again, other = FullyShardedDataParallel(Again(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear})), Again()
    for m in (again, other):
        m(x).pow(2).sum().backward()
    assert again.module.one is again.module.two is again.module.three[0]
    for m, reference in ((model, plain), (again, other)):
        for p, q in zip(m.parameters(), reference.parameters(), strict=True):
            assert tt.allclose(p.grad.full_tensor(), q.grad, atol=1e-5)


def refused(rank: int, size: int) -> None:
    """What was refused can be mended and tried again; values that are none of this process' are told; all processes raise."""
    model = nn.Linear(2, 2)
    model.factor = nn.Parameter(tt.tensor(1.0))
    with pytest.raises(ValueError, match="scalar parameters"):
        fully_shard(model)
    model.factor = nn.Parameter(tt.ones(1))
    fully_shard(model)
    with pytest.raises(ValueError, match=r"clip_grad_norm_: norm_type is nan; give a number"):
        fsdp.clip_grad_norm_(model.parameters(), 1.0, math.nan)
    assert fsdp.clip_grad_norm_(model.parameters(), 1.0).dtype == tt.float32
    rows = fully_shard(nn.Linear(3, 2 * size, bias=False))
    with pytest.raises(RuntimeError, match=rf"size mismatch for weight: .* \(2, 3\) from checkpoint.* is \({2 * size}, 3\)"):
        rows.load_state_dict({"weight": tt.ones(2, 3)})
    file, told = io.BytesIO(), [b""] * size
    tt.save(dict(rows.state_dict()), file)
    dist.all_gather_object(told, file.getvalue())
    other = (rank + 1) % size
    theirs = tt.load(io.BytesIO(told[other]))
    with pytest.raises(RuntimeError, match=rf"weight has the 2 rows from {2 * other} of .* this process keeps the 2 from {2 * rank}"):
        rows.load_state_dict(theirs)


def by_name(rank: int, size: int) -> None:
    """States by plain names of wrapped models: they are set, frozen ones left out, and optimizers found whatever forward left in place."""
    inner = Mlp()
    inner.layers[0].requires_grad_(False)
    model = FullyShardedDataParallel(inner, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True)
    wanted = {k: v * 0 + 5 for k, v in Mlp().state_dict().items()}
    assert not any(sd.set_model_state_dict(model, wanted, options=sd.StateDictOptions(full_state_dict=True)))
    same(sd.get_model_state_dict(model, options=sd.StateDictOptions(full_state_dict=True)), wanted, 0.0)
    assert all(isinstance(v, fsdp.Sharded) for v in sd.get_model_state_dict(model).values())
    found = sd.get_model_state_dict(model, options=sd.StateDictOptions(ignore_frozen_params=True))
    assert list(found) == [k for k in wanted if not k.startswith("layers.0.")]
    for keeps, names in ((True, ["layers.5.weight", "layers.5.bias"]), (False, ["weight", "bias"])):
        options = sd.StateDictOptions(keep_submodule_prefixes=keeps)
        assert list(sd.get_model_state_dict(model, submodules={inner.layers[5]}, options=options)) == names
    given = {**{k: v for k, v in wanted.items() if k != "layers.2.bias"}, "more": tt.ones(1)}
    result = sd.set_model_state_dict(model, given, options=sd.StateDictOptions(strict=False))
    assert (result.missing_keys, result.unexpected_keys) == (["layers.2.bias"], ["more"])
    sharding = sharded(Mlp)
    optimizer = optimizer_of(sharding, "adamw")
    sharding(batches(10)[0][0])  # leaves the root whole
    assert list(sd.get_optimizer_state_dict(sharding, optimizer)["state"]) == list(wanted)


def owners(rank: int, size: int) -> None:
    """Of a ZeroRedundancyOptimizer each process gives and takes its share, also one that has none."""
    model = nn.Linear(3, 3, bias=False)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), tt.optim.AdamW, lr=0.1)
    model(tt.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    mine = sd.get_optimizer_state_dict(model, optimizer)["state"]
    assert list(mine) == ["weight"] * (rank == 0)
    told: list[Any] = [mine]
    dist.broadcast_object_list(told, 0)
    whole = {"state": told[0], "param_groups": sd.get_optimizer_state_dict(model, optimizer)["param_groups"]}
    sd.set_optimizer_state_dict(model, optimizer, whole)
    assert len(optimizer.state) == (rank == 0)
    optimizer.consolidate_state_dict(0)


class Counted:
    """What fully_shard is to give a checkpoint: a model and its optimizer as they are, and their state in whole tensors."""

    def __init__(self, seed: int) -> None:
        self.model = sharded(Mlp)
        self.optimizer = optimizer_of(self.model, "adamw")
        rng = np.random.default_rng(seed)
        for p in self.model.parameters():  # of the whole, and the same on all processes
            whole = tt.tensor(rng.standard_normal(tuple(p.global_shape)))
            p.grad = p.like(whole._array[p.global_offset[0] : p.global_offset[0] + p.shape[0]])
        self.optimizer.step()

    def moments(self) -> list[Any]:
        options = sd.StateDictOptions(full_state_dict=True)
        found = sd.get_optimizer_state_dict(self.model, self.optimizer, options=options)["state"]
        return [[round(v, 12) for v in s["exp_avg"].flatten().tolist()] for s in found.values()]


def own_files(rank: int, size: int) -> None:
    """What optimizers keep of shards are shards: a program that asks finds it out, and a file of a rank's own comes back as what it was."""
    made = Counted(3)
    for key, p in enumerate(made.model.parameters()):
        state = made.optimizer.state_dict()["state"][key]
        assert [isinstance(t, DTensor) for t in (p, state["exp_avg"], state["step"])] == [True, True, False]
        assert state["exp_avg"].full_tensor().shape == p.global_shape
    moments, file = made.moments(), io.BytesIO()
    tt.save({"model": made.model.state_dict(), "optimizer": made.optimizer.state_dict()}, file)
    found, other = tt.load(io.BytesIO(file.getvalue())), Counted(4)
    other.model.load_state_dict(found["model"])
    other.optimizer.load_state_dict(found["optimizer"])
    assert other.moments() == moments
    assert all(isinstance(s["exp_avg"], DTensor) for s in other.optimizer.state.values())
    with pytest.raises(NotImplementedError, match="tensors are cut by fully_shard alone"):
        DTensor.from_local(tt.ones(1))


def saved(rank: int, size: int) -> None:
    """An optimizer as it is, among what is saved: its moments are parts as the parameters are."""
    made = Counted(3)
    metadata = dcp.save({"model": made.model, "optimizer": made.optimizer}, checkpoint_id=sys.argv[2])
    assert metadata.tensors["optimizer.state.0.exp_avg"].shape == (41, 10)


def loaded(rank: int, size: int) -> None:
    """What `saved` has saved, by another number of processes."""
    made, wanted = Counted(4), Counted(3)
    assert made.moments() != wanted.moments()
    dcp.load({"model": made.model, "optimizer": made.optimizer}, checkpoint_id=sys.argv[2])
    assert made.moments() == wanted.moments()
    same(full_state_dict(made.model), full_state_dict(wanted.model), 1e-12)
    for one in (made, wanted):
        for p in one.model.parameters():
            p.grad = p.like(tt.ones_like(p)._array)
        one.optimizer.step()
    same(full_state_dict(made.model), full_state_dict(wanted.model), 1e-12)


if __name__ == "__main__":
    run(
        [summoned, cast, hooks, places, refused, by_name, owners, own_files, saved, loaded],
        [name for name in sys.argv[1:] if "/" not in name],
    )
