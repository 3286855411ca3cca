"""DistributedDataParallel: equal to one process with the big batch, and every setting of it."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.algorithms.ddp_comm_hooks import default_hooks
from tritensor.distributed.algorithms.join import Join
from tritensor.nn import functional as F
from tritensor.nn.parallel import DistributedDataParallel
from tritensor.utils.checkpoint import checkpoint

STEPS, BATCH = 20, 24


class Mlp(nn.Module):
    def __init__(self, dtype: tt.dtype = tt.float32) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(10, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3)).to(
            dtype
        )

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.layers(x)


class Cnn(nn.Module):
    """Images, their layout, embedding-like sharing: weights in channels-last order, one weight used twice."""

    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(1)
        self.conv = nn.Conv2d(3, 8, 3, padding=1).to(memory_format=tt.channels_last)
        self.again = nn.Conv2d(8, 8, 3, padding=1)
        self.out = nn.Linear(8, 3)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        x = self.conv(x.reshape(-1, 3, 4, 4)).relu()
        return self.out(self.again(self.again(x).relu()).mean((2, 3)))


def batches(width: int, dtype: tt.dtype = tt.float32) -> list[tuple[tt.Tensor, tt.Tensor]]:
    rng = np.random.default_rng(7)
    made = [(rng.standard_normal((BATCH, width)), rng.standard_normal((BATCH, 3))) for _ in range(STEPS)]
    return [(tt.tensor(x, dtype=dtype), tt.tensor(y, dtype=dtype)) for x, y in made]


def train(model: nn.Module, data: list[tuple[tt.Tensor, tt.Tensor]], how: str, share: slice = slice(None)) -> list[float]:
    make = {"sgd": lambda p: tt.optim.SGD(p, lr=0.05, momentum=0.9), "adamw": lambda p: tt.optim.AdamW(p, lr=0.01)}[how]
    optimizer, losses = make(model.parameters()), []
    for x, y in data:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[share]), y[share])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def same(a: nn.Module, b: nn.Module, within: float) -> None:
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        gap = (p - q).abs().max().item()
        assert gap <= within, f"{name} differs by {gap}"


def part(rank: int, size: int) -> slice:
    n = BATCH // size
    return slice(rank * n, (rank + 1) * n)


def one_process(rank: int, size: int) -> None:
    """The big batch on one process gives what all processes' parts give together; and twice the same gives the same bits."""
    for kind, width, within in ((Mlp, 10, 1e-6), (Cnn, 48, 1e-6)):
        for how in ("sgd", "adamw"):
            data = batches(width)
            alone = kind()
            losses = train(alone, data, how)
            found = []
            for settings in (
                {},
                {},
                {"bucket_cap_mb": 0.001},
                {"static_graph": True},
                {"find_unused_parameters": True},
                {"gradient_as_bucket_view": True},
            ):
                model = DistributedDataParallel(kind(), **settings)
                mine = train(model, data, how, part(rank, size))
                same(model.module, alone, within)
                mean = tt.tensor(mine, dtype=tt.float64)
                dist.all_reduce(mean)
                assert np.allclose(mean.numpy() / size, losses, rtol=0, atol=1e-6), (mean.numpy() / size, losses)
                found.append([p.detach().clone() for p in model.parameters()])
            for other in found[1:2]:
                assert all(tt.equal(p, q) for p, q in zip(found[0], other, strict=True)), "two runs differ"
    alone = Mlp(tt.float64)
    train(alone, batches(10, tt.float64), "adamw")
    model = DistributedDataParallel(Mlp(tt.float64))
    train(model, batches(10, tt.float64), "adamw", part(rank, size))
    same(model.module, alone, 1e-9)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        tt.manual_seed(0)
        self.a, self.b, self.c, self.never = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: tt.Tensor, which: str) -> dict[str, list[tt.Tensor]]:
        return {"out": [self.c(getattr(self, which)(x))]}


def unused(rank: int, size: int) -> None:
    """Parameters that some ranks use, or none."""
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    kept = tt.full((3, 3), 5.0)
    model.module.never.weight.grad = kept
    for _ in range(3):
        for p in model.parameters():
            if p is not model.module.never.weight:
                p.grad = None
        model(tt.ones(2, 3), "a" if rank == 0 else "b")["out"][0].sum().backward()
        assert model.module.never.weight.grad is kept  # nobody used it: it is what it was
        assert model.module.never.bias.grad is None
        expected = Branches()
        expected(tt.ones(2, 3), "a")["out"][0].sum().backward()
        assert tt.allclose(model.module.a.weight.grad, expected.a.weight.grad / size)
        expected = Branches()
        expected(tt.ones(2, 3), "b")["out"][0].sum().backward()
        assert tt.allclose(model.module.b.weight.grad, expected.b.weight.grad * (size - 1) / size)
    model = DistributedDataParallel(Branches())
    model(tt.ones(2, 3), "a")["out"][0].sum().backward()
    with pytest.raises(RuntimeError, match=r"Expected to have finished reduction.*got no gradient: never.*b\.(weight|bias)"):
        model(tt.ones(2, 3), "a")
    model = DistributedDataParallel(Branches(), static_graph=True)
    for _ in range(3):
        model.zero_grad()
        model(tt.ones(2, 3), "a" if rank == 0 else "b")["out"][0].sum().backward()
        assert model.module.never.weight.grad is None
        expected = Branches()
        expected(tt.ones(2, 3), "a")["out"][0].sum().backward()
        assert tt.allclose(model.module.a.weight.grad, expected.a.weight.grad / size)


def accumulated(rank: int, size: int) -> None:
    """no_sync, gradients that are kept, two losses, two forwards before a backward, checkpoints."""
    x = tt.full((2, 10), rank + 1.0)
    alone = Mlp()
    for r in range(size):
        for _ in range(3):
            (alone(tt.full((2, 10), r + 1.0)).sum() / size).backward()
    model = DistributedDataParallel(Mlp())
    with model.no_sync():
        model(x).sum().backward()
        model(x).sum().backward()
    model(x).sum().backward()
    for p, q in zip(model.parameters(), alone.parameters(), strict=True):
        assert tt.allclose(p.grad, q.grad, atol=1e-4), (p.grad, q.grad)
    kept = [p.grad for p in model.parameters()]
    values = [g.clone() for g in kept]
    model.zero_grad()
    (model(x) * 2).sum().backward()
    assert all(tt.equal(a, b) for a, b in zip(kept, values, strict=True)), "gradients that were kept were written over"
    before = [p.grad.clone() for p in model.parameters()]
    (model(x) * 2).sum().backward()  # added to what is there
    for p, g in zip(model.parameters(), before, strict=True):
        assert tt.allclose(p.grad, 2 * g, atol=1e-5)
    model.zero_grad()
    first, second = model(x), model(2 * x)
    (first.sum() + second.sum()).backward()
    expected = Mlp()
    for r in range(size):
        ((expected(tt.full((2, 10), r + 1.0)).sum() + expected(tt.full((2, 10), 2 * r + 2.0)).sum()) / size).backward()
    for p, q in zip(model.parameters(), expected.parameters(), strict=True):
        assert tt.allclose(p.grad, q.grad, atol=1e-4)

    class Checkpointed(Mlp):
        def forward(self, x: tt.Tensor) -> tt.Tensor:
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=self.reentrant)
            return x

    for reentrant, settings in ((False, {}), (True, {}), (True, {"static_graph": True})):
        inner = Checkpointed()
        inner.reentrant = reentrant
        model = DistributedDataParallel(inner, **settings)
        for _ in range(2):
            model.zero_grad()
            model(x.clone().requires_grad_()).sum().backward()
        alone = Mlp()
        for r in range(size):
            (alone(tt.full((2, 10), r + 1.0)).sum() / size).backward()
        for p, q in zip(model.parameters(), alone.parameters(), strict=True):
            assert tt.allclose(p.grad, q.grad, atol=1e-5), reentrant


def buffers_and_copies(rank: int, size: int) -> None:
    tt.manual_seed(rank)
    inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model = DistributedDataParallel(inner)
    weights = [None] * size
    dist.all_gather_object(weights, model.module[0].weight.tolist())
    assert all(w == weights[0] for w in weights), "all begin with rank 0's values"
    model(tt.full((4, 4), float(rank)) + tt.arange(4.0)).sum().backward()
    assert model.will_sync_module_buffers()
    model.eval()
    model(tt.zeros(4, 4))
    means = [None] * size
    dist.all_gather_object(means, model.module[1].running_mean.tolist())
    assert all(m == means[0] for m in means), means
    assert next(iter(model.state_dict())) == "module.0.weight"
    twin = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model))
    assert not twin.training
    assert not again.training
    for one in (twin, again):
        one.train()
        one(tt.ones(4, 4) * rank + tt.arange(4.0)[:, None]).sum().backward()
        grads = [None] * size
        dist.all_gather_object(grads, one.module[0].weight.grad.tolist())
        assert all(g == grads[0] for g in grads)
    with pytest.raises(
        dist.DistError,
        match=r"the modules differ: rank \d of the group has parameter weight float32 \(3, 3\), rank 0 weight float32 \(3, 2\)",
    ):
        DistributedDataParallel(nn.Linear(2 + (rank > 0), 3))


def hooks(rank: int, size: int) -> None:
    x = tt.full((2, 10), rank + 1.0)
    plain = DistributedDataParallel(Mlp())
    plain(x).sum().backward()
    for hook, within in (
        (default_hooks.allreduce_hook, 1e-6),
        (default_hooks.fp16_compress_hook, 1e-2),
        (default_hooks.bf16_compress_hook, 1e-1),
    ):
        model = DistributedDataParallel(Mlp(), bucket_cap_mb=0.001)
        model.register_comm_hook(None, hook)
        for _ in range(2):
            model.zero_grad()
            model(x).sum().backward()
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            assert (p.grad - q.grad).abs().max().item() <= within * max(1, q.grad.abs().max().item()), hook
    assert [t.bucket for t in model.times()] == list(range(len(model.reducer.buckets)))
    assert len(model.times()) > 2
    assert all(0 <= t.ready <= t.averaged for t in model.times())
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, default_hooks.allreduce_hook)


def uneven(rank: int, size: int) -> None:
    """Ranks with different numbers of batches, and what the average of a step is divided by."""
    for by_all in (True, False):
        model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with tt.no_grad():
            model.module.weight.fill_(1.0)
        grads = []
        with model.join(divide_by_initial_world_size=by_all):
            for _ in range(rank + 1):
                model.zero_grad()
                model(tt.ones(1, 1)).sum().backward()
                grads.append(model.module.weight.grad.item())
        active = [size - step for step in range(rank + 1)]
        assert grads == pytest.approx([a / size if by_all else 1.0 for a in active]), (grads, active)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), find_unused_parameters=True)
    optimizer = tt.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for step in range(3 - (rank % 2)):
            optimizer.zero_grad()
            model(tt.arange(6.0).reshape(2, 3) + step).pow(2).sum().backward()
            optimizer.step()
    weights = [None] * size
    dist.all_gather_object(weights, model.module[0].weight.tolist())
    assert all(w == weights[0] for w in weights)
    inner = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    inner.register_buffer("own", tt.full((1 + rank,), float(rank)))  # each process has another one, which nobody sends
    inner._ddp_params_and_buffers_to_ignore = ["own"]
    model = DistributedDataParallel(inner)
    with model.join():
        for _ in range(1 + rank):
            model(tt.arange(6.0).reshape(2, 3)).sum().backward()
    assert inner.own.tolist() == [rank] * (1 + rank)

    def steps() -> None:
        with Join([model], throw_on_early_termination=True):
            for _ in range(2 + rank):
                model(tt.ones(2, 3)).sum().backward()

    with pytest.raises(RuntimeError, match="exhausted all inputs"):
        steps()


class Either(nn.Module):
    """One layer or the other, or both, as the caller says."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)

    def forward(self, x: tt.Tensor, names: str) -> tt.Tensor:
        return sum(getattr(self, name)(x) for name in names)


def kept(rank: int, size: int) -> None:
    """Gradients of parameters that a step does not use, where those of the steps before were kept."""
    mean = sum(range(1, size + 1)) / size
    x = tt.tensor([[rank + 1.0]])
    model = DistributedDataParallel(Either(), find_unused_parameters=True)
    a, b = model.module.a.weight, model.module.b.weight
    model(x, "ab").sum().backward()
    model(x, "a").sum().backward()  # nobody uses b
    assert (a.grad.item(), b.grad.item()) == pytest.approx((2 * mean, mean))
    model(x, "a" if rank else "b").sum().backward()  # only process 0 uses b, only the others use a
    assert (a.grad.item(), b.grad.item()) == pytest.approx((2 * mean + (size * mean - 1) / size, mean + 1 / size))
    model.zero_grad()
    with model.no_sync():
        model(x, "b").sum().backward()
    model(x, "a").sum().backward()  # b's is of this process alone until now
    assert (a.grad.item(), b.grad.item()) == pytest.approx((mean, mean))


def between(rank: int, size: int) -> None:
    """Forwards without gradients, or without averages, between a forward and its backward."""
    mean = sum(range(1, size + 1)) / size
    x = tt.tensor([[rank + 1.0]])
    model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    out = model(x)
    with tt.no_grad():
        model(x)
    out.sum().backward()
    assert model.module.weight.grad.item() == pytest.approx(mean)
    out = model(x)
    with model.no_sync():
        other = model(2 * x)
    (out + other).sum().backward()
    assert model.module.weight.grad.item() == pytest.approx(4 * mean)


def shared_batch_norm(rank: int, size: int) -> None:
    """SyncBatchNorm on parts of a batch, one of them empty, is BatchNorm on all of it."""
    rng = np.random.default_rng(3)
    for shape, dtype, within in (((12, 5), tt.float32, 1e-5), ((12, 5, 3, 2), tt.float64, 1e-10), ((12, 5, 4), tt.bfloat16, 0.1)):
        whole = tt.tensor(rng.standard_normal(shape) * 3 + 1, dtype=dtype)
        weights = tt.tensor(rng.standard_normal(shape), dtype=dtype)
        alone = [nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d][len(shape) - 2](5).to(dtype)
        x = whole.clone().requires_grad_()
        y = alone(x)
        (y * weights).sum().backward()
        norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(5))).to(dtype)
        rows = [0, *(12 * (r + 1) // (size - 1) for r in range(size - 1)), 12]  # the last has none
        mine = slice(rows[rank], rows[rank + 1])
        z = whole[mine].clone().requires_grad_()
        out = norm(z)
        (out * weights[mine]).sum().backward()
        for got, want in (
            (out, y[mine]),
            (z.grad, x.grad[mine]),
            (norm[0].running_mean, alone.running_mean),
            (norm[0].running_var, alone.running_var),
        ):
            assert got.shape == want.shape
            assert not got.numel() or (got - want).abs().max().item() <= within, (shape, got, want)
        for got, want in ((norm[0].weight.grad, alone.weight.grad), (norm[0].bias.grad, alone.bias.grad)):
            dist.all_reduce(got)
            assert (got - want).abs().max().item() <= 20 * within, (shape, got, want)
        again, plain = nn.SyncBatchNorm(5).to(dtype), type(alone)(5).to(dtype)
        checkpoint(again, z, use_reentrant=False).sum().backward()  # whose second run ends when all is saved
        plain(whole), plain(whole)
        assert (again.running_mean - plain.running_mean).abs().max().item() <= within, shape
        assert (again.running_var - plain.running_var).abs().max().item() <= within, shape
        norm.eval()
        assert (norm(whole) - alone.eval()(whole)).abs().max().item() <= within


CHECKS = {f.__name__: f for f in (one_process, unused, kept, between, accumulated, buffers_and_copies, hooks, uneven, shared_batch_norm)}


def main() -> None:
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for name in sys.argv[1:] or CHECKS:
        CHECKS[name](rank, size)
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
