"""ZeroRedundancyOptimizer: equal to one process with the big batch, with states and gradients shared out; its states saved and loaded."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from sharded_models import OPTIMIZERS, Former, Mlp, alone, batches, part, run, same, train

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.algorithms.join import Join
from tritensor.distributed.optim import ZeroRedundancyOptimizer
from tritensor.distributed.optim.gradient_shards import GradientShards
from tritensor.ground.errors import CheckpointError, GradError
from tritensor.nn.parallel import DistributedDataParallel


def made(model: nn.Module, how: str, **settings: Any) -> ZeroRedundancyOptimizer:
    kind, own = OPTIMIZERS[how]
    return ZeroRedundancyOptimizer(model.parameters(), kind, **settings, **own)


def one_process(rank: int, size: int) -> None:
    """Both stages, both ways to send parameters; twice the same gives the same bits."""
    for kind in (Mlp, Former):
        for how in OPTIMIZERS:
            wanted, found = alone(kind, how), []
            for settings in ({}, {"parameters_as_bucket_view": True}, {"shard_gradients": True}, {"shard_gradients": True}):
                model = kind()
                replica = model if "shard_gradients" in settings else DistributedDataParallel(model)
                optimizer = made(model, how, **settings)
                train(replica, optimizer, batches(kind.width), part(rank, size))
                same(model.state_dict(), wanted, 1e-9)
                found.append(model.state_dict())
                mine = optimizer.owned(rank)
                assert set(map(id, optimizer.optim.state)) == set(map(id, mine))
                if "shard_gradients" in settings:
                    assert {id(p) for p in model.parameters() if p.grad is not None} == set(map(id, mine))
            same(found[2], found[3], 0.0)


def partition(rank: int, size: int) -> None:
    """The largest first, each to who has least, as PyTorch shares them out."""
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
    optimizer = made(model, "sgd")
    wanted = {2: [[15], [5, 5, 1]], 4: [[15], [5], [5], [1]]}[size]
    assert [[p.numel() for p in optimizer.owned(r)] for r in range(size)] == wanted
    more = nn.Linear(4, 4)
    optimizer.add_param_group({"params": list(more.parameters()), "lr": 0.5})
    assert [g["lr"] for g in optimizer.optim.param_groups] == [0.05, 0.5]
    assert sum(len(optimizer.owned(r)) for r in range(size)) == 6
    scheduler = tt.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    for p in [*model.parameters(), *more.parameters()]:
        p.grad = tt.ones_like(p)
    before = more.weight.detach().clone()
    optimizer.step()
    assert tt.allclose(more.weight, before - 0.5)
    scheduler.step()
    optimizer.step()
    assert [g["lr"] for g in optimizer.optim.param_groups] == [pytest.approx(0.005), pytest.approx(0.05)]


def states(rank: int, size: int) -> None:
    """A state goes from many processes to one and back, and training goes on as if nothing had been."""
    data = batches(10)
    model = Mlp()
    optimizer = made(model, "adamw", shard_gradients=True)
    train(model, optimizer, data[:5], part(rank, size))
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        optimizer.state_dict()
    for to in range(size):
        optimizer.consolidate_state_dict(to)
        if rank == to:
            saved = copy.deepcopy(optimizer.state_dict())
    single = Mlp()
    single.load_state_dict(model.state_dict())
    one = tt.optim.AdamW(single.parameters(), lr=0.3)
    one.load_state_dict(saved)
    train(single, one, data[5:])
    again = Mlp()
    again.load_state_dict(model.state_dict())
    loaded = made(again, "adamw", shard_gradients=True)
    loaded.param_groups[0]["lr"] = 0.7
    loaded.load_state_dict(saved)
    assert loaded.param_groups[0]["lr"] == 0.01
    for m, o in ((model, optimizer), (again, loaded)):
        train(m, o, data[5:], part(rank, size))
        same(m.state_dict(), single.state_dict(), 1e-9)
    big = max(range(len(saved["state"])), key=lambda i: saved["state"][i]["exp_avg"].numel())
    saved["state"][big]["exp_avg"] = tt.ones(2, 2)
    with pytest.raises(CheckpointError, match=rf"exp_avg of parameter {big} is \(2, 2\)"):  # not on its owner alone
        loaded.load_state_dict(saved)
    with pytest.raises(CheckpointError, match="parameter groups of"):
        made(nn.Linear(2, 2), "adamw").load_state_dict(saved)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.a, self.b, self.never = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)


def gradients(rank: int, size: int) -> None:
    """Accumulated, clipped, unused on some processes or on all; small buckets; a closure."""
    x = tt.ones(2, 3)
    for cap in (1, 40, 1 << 20):
        model = Branches()
        optimizer = made(model, "sgd", shard_gradients=True)
        optimizer.gradients.forget()
        owners = optimizer.gradients.owners
        optimizer.gradients = GradientShards(list(model.parameters()), owners, optimizer.process_group, cap)
        for times in (1, 2):
            optimizer.zero_grad()
            for _ in range(times):
                ((model.a if rank == 0 else model.b)(x).sum()).backward()
            for p, owner in zip(model.parameters(), owners, strict=True):
                used = p is not model.never.weight and p is not model.never.bias
                assert (p.grad is not None) == (used and owner == rank)
            for part_, share in ((model.a, 1 / size), (model.b, 1 - 1 / size)):
                if part_.weight.grad is not None:
                    assert tt.allclose(part_.weight.grad, tt.full((3, 3), 2.0 * share * times)), (cap, times, part_.weight.grad)
    want = float(sum(9 * (2 * s * 2) ** 2 + 3 * (2 * s * 2) ** 2 for s in (1 / size, 1 - 1 / size))) ** 0.5
    sizes = [4 * s for s in (1 / size, 1 - 1 / size) if s]  # of the gradients' elements: those of a matrix and a vector for each
    for order, total in (
        (0, 2 * len(sizes)), (-1, 1 / sum(12 / x for x in sizes)), (-math.inf, min(sizes)), (math.inf, max(sizes)), (1, 12 * sum(sizes)),
    ):  # fmt: skip
        assert optimizer.clip_grad_norm_(1e9, order).item() == pytest.approx(total, rel=1e-5), order
    assert optimizer.clip_grad_norm_(0.5).item() == pytest.approx(want, rel=1e-5)
    assert optimizer.clip_grad_norm_(100.0).item() == pytest.approx(0.5, rel=1e-4)
    assert optimizer.step(lambda: model.a(x).sum().detach()).item() == pytest.approx(model.a(x).sum().item(), abs=1.0)
    told = [None] * size
    dist.all_gather_object(told, [p.detach().sum().item() for p in model.parameters()])
    assert all(t == told[0] for t in told)


def kept(rank: int, size: int) -> None:
    """Gradients of an earlier backward: autograd.grad leaves them, and one that fails brings nothing of them back after zero_grad."""
    x, plain, model = batches(10)[0][0], Mlp(), Mlp()
    optimizer = made(model, "sgd", shard_gradients=True)
    plain(x).pow(2).mean().backward()
    wanted = {id(p): q.grad for p, q in zip(model.parameters(), plain.parameters(), strict=True)}
    model(x).pow(2).mean().backward()
    tt.autograd.grad(model(x).sum(), list(model.parameters()))
    assert {id(p) for p in model.parameters() if p.grad is not None} == set(map(id, optimizer.owned(rank)))
    handle = model.layers[1].register_full_backward_hook(lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(x).pow(2).mean().backward()
    handle.remove()
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    for p in optimizer.owned(rank):
        assert tt.allclose(p.grad, wanted[id(p)], atol=1e-12)


def uneven(rank: int, size: int) -> None:
    """Ranks with different numbers of batches: those that are through go on stepping their share by the others' average."""
    rows = [batches(10)[r][0] for r in range(size)]
    model = DistributedDataParallel(Mlp())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), tt.optim.Adam, lr=0.01)
    with Join([model, optimizer]):
        for _ in range(rank + 1):
            optimizer.zero_grad()
            model(rows[rank]).pow(2).mean().backward()
            optimizer.step()
    plain = Mlp()
    reference = tt.optim.Adam(plain.parameters(), lr=0.01)
    for step in range(size):
        reference.zero_grad()
        for r in range(step, size):
            (plain(rows[r]).pow(2).mean() / size).backward()
        reference.step()
    same(dict(model.module.named_parameters()), dict(plain.named_parameters()), 1e-9)
    alone = Mlp()
    optimizer = made(alone, "sgd")
    for p in alone.parameters():
        p.grad = tt.ones_like(p)
    with Join([optimizer]):
        for _ in range(rank + 1):
            optimizer.step()
    told = [None] * size
    dist.all_gather_object(told, [p.detach().sum().item() for p in alone.parameters()])
    assert all(t == told[0] for t in told)


def refused(rank: int, size: int) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="overlap_with_ddp is not in tritensor"):
        made(model, "sgd", overlap_with_ddp=True)
    with pytest.raises(TypeError, match="optimizer_class is 3"):
        ZeroRedundancyOptimizer(model.parameters(), 3, lr=1.0)
    with pytest.raises(ValueError, match="empty parameter list"):
        ZeroRedundancyOptimizer([], tt.optim.SGD, lr=1.0)
    frozen = nn.Linear(2, 2)
    frozen.bias.requires_grad_(False)
    sharing = made(frozen, "sgd", shard_gradients=True)
    with pytest.raises(NotImplementedError, match="Join: ZeroRedundancyOptimizer with shard_gradients"):
        Join([sharing])
    frozen.bias.requires_grad_(True)
    frozen(tt.ones(1, 2)).sum().backward()
    with pytest.raises(GradError, match=r"a parameter of shape \(2,\) has a gradient and did not require one"):
        sharing.step()
    optimizer, more = made(model, "sgd"), nn.Linear(3, 3)
    with pytest.raises(TypeError, match="lr is None, a NoneType; give a number"):
        optimizer.add_param_group({"params": list(more.parameters()), "lr": None})
    optimizer.add_param_group({"params": list(more.parameters()), "lr": 1.0})
    optimizer.step()
    assert len(optimizer.param_groups) == len(optimizer.optim.param_groups) == 2
    assert sum(len(optimizer.owned(r)) for r in range(size)) == 4
    optimizer = made(model, "sgd", parameters_as_bucket_view=True)
    model.double()
    for p in model.parameters():
        p.grad = tt.ones_like(p)
    with pytest.raises(ValueError, match="data became another tensor"):
        optimizer.step()


if __name__ == "__main__":
    run([one_process, partition, states, gradients, kept, uneven, refused])
