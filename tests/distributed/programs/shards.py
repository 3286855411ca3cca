"""fully_shard: equal to one process with the big batch; states, accumulation, unused and frozen parameters, checkpoints."""

from __future__ import annotations

import copy
import functools
import io

import pytest
from sharded_models import OPTIMIZERS, Former, Mlp, alone, batches, optimizer_of, part, run, same, sharded, train

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed import fsdp
from tritensor.distributed.fsdp import full_state_dict, fully_shard
from tritensor.ground.errors import GradError
from tritensor.nn import functional as F
from tritensor.utils.checkpoint import checkpoint


def one_process(rank: int, size: int) -> None:
    """Nested and plain, given back after forward or not; twice the same gives the same bits."""
    for kind in (Mlp, Former):
        for how in OPTIMIZERS:
            wanted, found = alone(kind, how), []
            for nested, settings in (
                (True, {}),
                (True, {}),
                (False, {}),
                (True, {"reshard_after_forward": False}),
                (True, {"reshard_after_forward": True}),
            ):
                model = sharded(kind, nested, **settings)
                train(model, optimizer_of(model, how), batches(kind.width), part(rank, size))
                found.append(full_state_dict(model))
                same(found[-1], wanted, 1e-9)
            same(found[0], found[1], 0.0)


def places(rank: int, size: int) -> None:
    """Shards say where they belong, as chunk cuts; the last processes may have none."""
    model, plain = sharded(Mlp), Mlp()
    for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
        chunks = q.detach().chunk(size)
        mine = chunks[rank] if rank < len(chunks) else q.detach()[:0]
        assert tt.equal(p.to_local(), mine), name
        assert p.global_shape == q.shape
        assert p.global_offset == (sum(len(c) for c in chunks[:rank]), *[0] * (q.ndim - 1))
        assert tt.equal(p.full_tensor(), q)
        assert p.placements == (fsdp.Shard(0),)
        held = copy.deepcopy(p)
        assert type(held) is type(p)
        assert tt.equal(held, p)
    assert type(model).__name__ == "FSDPMlp"
    assert isinstance(model, fsdp.FSDPModule)
    assert isinstance(model, Mlp)
    out = model(batches(10)[0][0])
    assert [p.shape for p in model.layers[5].parameters()] == [
        q.shape for q in plain.layers[5].parameters()
    ]  # the root's stay for backward
    assert model.layers[0].weight.shape[0] == -(-41 // size) if rank == 0 else True
    out.sum().backward()
    assert model.layers[5].weight.shape != plain.layers[5].weight.shape
    assert model.layers[5].weight.grad.full_tensor().shape == plain.layers[5].weight.shape
    with tt.no_grad():
        assert tt.equal(model(batches(10)[0][0]), out)
    model.unshard()
    assert model.layers[5].weight.shape == plain.layers[5].weight.shape
    handle = model.layers[0].unshard(async_op=True)
    handle.wait()
    assert tt.equal(model.layers[0].weight, plain.layers[0].weight)
    model.layers[0].reshard()
    model.reshard()
    with tt.no_grad():
        assert tt.equal(sharded(Returns)(), tt.arange(12.0).reshape(6, 2))


class Returns(nn.Module):
    """Gives its parameter itself, whose memory is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tt.arange(12.0).reshape(6, 2))

    def forward(self) -> tt.Tensor:
        return self.weight

    def parts(self) -> list[nn.Module]:
        return []


def states(rank: int, size: int) -> None:
    """State dicts of shards and of whole parameters, loaded into either; shards through a file."""
    model, plain = sharded(Former), Former()
    shards = model.state_dict()
    assert all(isinstance(v, fsdp.Sharded) and v.global_shape == plain.state_dict()[k].shape for k, v in shards.items())
    same(full_state_dict(model), plain.state_dict(), 0.0)
    assert bool(full_state_dict(model, rank0_only=True)) == (rank == 0)
    tt.manual_seed(5)
    other = {k: tt.randn_like(v) for k, v in plain.state_dict().items()}
    assert not any(model.load_state_dict(other))
    same(full_state_dict(model), other, 0.0)
    file = io.BytesIO()
    tt.save(dict(model.state_dict()), file)
    file.seek(0)
    saved = tt.load(file, weights_only=False)
    model.load_state_dict(plain.state_dict())
    model.load_state_dict(saved)
    same(full_state_dict(model), other, 0.0)
    with pytest.raises(RuntimeError, match=r"size mismatch for norm\.weight"):
        model.load_state_dict({**other, "norm.weight": tt.ones(3, 3)})
    with pytest.raises(ValueError, match="assign=True would put other tensors in the place of shards"):
        model.load_state_dict(other, assign=True)
    x, y = batches(6)[0]
    optimizer = optimizer_of(model, "adamw")
    train(model, optimizer, batches(6)[:2], part(rank, size))
    model.float()
    assert {p.dtype for p in model.parameters()} == {tt.float32}
    optimizer.zero_grad()
    F.mse_loss(model(x.float()), y.float()).backward()
    assert all(p.grad.dtype == tt.float32 and p.grad.shape == p.shape for p in model.parameters())


def accumulated(rank: int, size: int) -> None:
    """Gradients of several batches, reduced at each or at the last; norms over all shards."""
    data, plain = batches(10)[:3], Mlp()
    for x, y in data:
        F.mse_loss(plain(x), y).backward()
    wanted = {k: p.grad for k, p in plain.named_parameters()}
    for syncs in (True, False):
        model = sharded(Mlp)
        for i, (x, y) in enumerate(data):
            model.set_requires_gradient_sync(syncs or i == 2)
            model.set_reshard_after_backward(i == 2)
            F.mse_loss(model(x[part(rank, size)]), y[part(rank, size)]).backward()
        same({k: p.grad.full_tensor() for k, p in model.named_parameters()}, wanted, 1e-12)
    for kind in (2.0, 1.0, float("inf")):
        wanted_norm = nn.utils.clip_grad_norm_(plain.parameters(), 0.5, kind)
        norm = fsdp.clip_grad_norm_(model.parameters(), 0.5, kind)
        assert norm.item() == pytest.approx(wanted_norm.item(), rel=1e-10)
        same({k: p.grad.full_tensor() for k, p in model.named_parameters()}, wanted, 1e-10)
    if rank == 0:
        model.layers[0].weight.grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match=r"total norm of order 2\.0 is nan"):
        fsdp.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    first, second = sharded(Mlp), Mlp()
    for model in (first, second):  # two graphs at once, backward through each
        x, y = data[0]
        losses = [F.mse_loss(model(x), y), F.mse_loss(model(x + 1), y)]
        for loss in losses:
            loss.backward()
    same({k: p.grad.full_tensor() for k, p in first.named_parameters()}, {k: p.grad for k, p in second.named_parameters()}, 1e-12)


class Branches(nn.Module):
    """Parts of which the loss uses other ones on other processes."""

    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.stem, self.head = nn.Linear(3, 3), nn.Linear(3, 3)
        self.twins = nn.ModuleList([Twin() for _ in range(4)])

    def forward(self, x: tt.Tensor, which: list[str]) -> tt.Tensor:
        x = self.stem(x)
        for twin, name in zip(self.twins, which, strict=True):
            x = twin(x, name)
        return self.head(x)

    def parts(self) -> list[nn.Module]:
        return list(self.twins)


class Twin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.never = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: tt.Tensor, which: str) -> tt.Tensor:
        return x if which == "neither" else getattr(self, which)(x).tanh()


def unused(rank: int, size: int) -> None:
    """Parameters that some processes use, or none; groups without a gradient on some."""
    ways = [["a", "b", "a", "neither"], ["b", "neither", "a", "b"], ["neither"] * 4, ["a"] * 4]
    x = tt.randn(2, 3)
    dist.broadcast(x, 0)
    for settings in ({}, {"reshard_after_forward": False}):
        model, plain = sharded(Branches, **settings), Branches()
        for r in range(size):
            (plain(x, ways[r]).pow(2).sum() / size).backward()
        for _ in range(3):
            model.zero_grad()
            model(x, ways[rank]).pow(2).sum().backward()
            for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
                assert (p.grad is None) == (q.grad is None), name
                assert q.grad is None or tt.allclose(p.grad.full_tensor(), q.grad, atol=1e-6), name


class Bypass(nn.Module):
    """Leaves something for the loss that is none of its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.aside = self.two(self.one(x).tanh())
        return x * 2


def frozen_and_recomputed(rank: int, size: int) -> None:
    """Frozen parameters, checkpoints of both kinds, and a backward that does not pass a module's outputs."""
    x = batches(6)[0][0]
    for reentrant in (False, True, None):
        model, plain = sharded(Former), Former()
        for m in (model, plain):
            for block in m.blocks:
                block.up.requires_grad_(False)
                block.attention.requires_grad_(reentrant is None)
                if reentrant is not None:
                    block.forward = functools.partial(checkpoint, block.forward, use_reentrant=reentrant)
            if reentrant is True:  # a checkpoint around the sharded module
                for i, block in enumerate(m.blocks):
                    del block.forward
                    m.blocks[i] = Around(block)
            for _ in range(2):
                m(x).pow(2).mean().backward()
        for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), name
            assert q.grad is None or tt.allclose(p.grad.full_tensor(), q.grad, atol=1e-12), (reentrant, name)
    outer = fully_shard(nn.Sequential(fully_shard(Bypass()), nn.Linear(4, 4)))
    outer(tt.ones(2, 4, requires_grad=True))
    with pytest.raises(GradError, match="fully_shard's reshard then overwrote"):
        outer[0].aside.sum().backward()


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return checkpoint(self.inner, x, use_reentrant=True)


if __name__ == "__main__":
    run([one_process, places, states, accumulated, unused, frozen_and_recomputed])
