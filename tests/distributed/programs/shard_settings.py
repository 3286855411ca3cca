"""fully_shard and FullyShardedDataParallel: types, wrappers, meshes, prefetching, errors, and what is refused."""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import pytest
from sharded_models import Former, Mlp, alone, batches, optimizer_of, part, run, same, sharded, train

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed import fsdp
from tritensor.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, full_state_dict, fully_shard
from tritensor.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, size_based_auto_wrap_policy, transformer_auto_wrap_policy
from tritensor.distributed.optim import ZeroRedundancyOptimizer
from tritensor.ground.errors import GradError
from tritensor.nn import functional as F


def outside(rank: int, size: int) -> None:
    """What stands outside of the shards and must know of all of them: nn.utils.clip_grad_norm_, GradScaler."""
    model, plain = sharded(functools.partial(Mlp, tt.float32), False), Mlp(tt.float32)
    x, y = batches(10, tt.float32)[0]
    F.mse_loss(model(x), y).backward()
    F.mse_loss(plain(x), y).backward()
    for order in (1.0, 2.0, math.inf, 0, -1, -math.inf, 0.5):
        norms = [nn.utils.get_total_norm([p.grad for p in m.parameters()], order).item() for m in (model, plain)]
        assert abs(norms[0] - norms[1]) <= 1e-4 * norms[1], (order, norms)
    want = nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
    got = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    assert abs(got.item() - want.item()) < 1e-5
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        assert tt.allclose(p.grad.full_tensor(), q.grad, atol=1e-6)
    scaler, optimizer = tt.amp.GradScaler("cpu", init_scale=4.0), tt.optim.SGD(model.parameters(), lr=0.1)
    before = [p.full_tensor().clone() for p in model.parameters()]
    for p in model.parameters():
        if rank == 0:
            p.grad[:1] = float("inf")  # in the part of one rank
            break
    scaler.scale(tt.ones(1))
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0
    assert all(tt.equal(p.full_tensor(), b) for p, b in zip(model.parameters(), before, strict=True))


def mixed(rank: int, size: int) -> None:
    """Types to compute and to reduce in."""
    policy = fsdp.MixedPrecisionPolicy(param_dtype=tt.bfloat16, reduce_dtype=tt.float32, output_dtype=tt.float32)
    model, plain = sharded(functools.partial(Mlp, tt.float32), False, mp_policy=policy), Mlp(tt.float32)
    seen = []
    model.layers[1].register_forward_hook(lambda m, args, out: seen.append(out.dtype))
    x, y = batches(10, tt.float32)[0]
    out = model(x)
    assert out.dtype == tt.float32
    assert seen == [tt.bfloat16]
    F.mse_loss(out, y).backward()
    F.mse_loss(plain(x), y).backward()
    for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert p.dtype == p.grad.dtype == tt.float32
        assert tt.allclose(p.grad.full_tensor(), q.grad, atol=0.03), name


def wrapped(rank: int, size: int) -> None:
    """FullyShardedDataParallel: its strategies, policies, names and states."""
    by_size = functools.partial(size_based_auto_wrap_policy, min_num_params=300)
    by_layer = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear})
    policies = (None, by_size, by_layer, ModuleWrapPolicy({nn.Linear}), CustomPolicy(lambda m: isinstance(m, nn.Linear)))
    wanted = alone(Mlp, "adamw")
    for i, policy in enumerate(policies):
        strategy = [ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD][i % 3]
        model = Mlp()
        if rank:
            tt.nn.init.zeros_(model.layers[0].weight)
        model = FullyShardedDataParallel(
            model, sharding_strategy=strategy, auto_wrap_policy=policy, sync_module_states=True, use_orig_params=True, device_id="cpu"
        )
        assert len(FullyShardedDataParallel.fsdp_modules(model)) == [1, 3, 4, 4, 4][i], i
        train(model, optimizer_of(model, "adamw"), batches(10), part(rank, size))
        same(model.state_dict(), wanted, 1e-9)
    assert model.check_is_root()
    with FullyShardedDataParallel.state_dict_type(model, fsdp.StateDictType.SHARDED_STATE_DICT):
        shards = copy.deepcopy(model.state_dict())
    assert list(shards) == list(wanted)
    assert all(isinstance(v, fsdp.Sharded) for v in shards.values())
    model.load_state_dict(Mlp().state_dict())
    same(model.state_dict(), Mlp().state_dict(), 0.0)
    model.load_state_dict(shards)
    with FullyShardedDataParallel.summon_full_params(model):
        same({k.replace("_fsdp_wrapped_module.", ""): v.detach() for k, v in model.named_parameters()}, wanted, 1e-9)
        model.layers[0].bias.data.fill_(2.0)
    assert tt.equal(model.state_dict()["layers.0.bias"], tt.full((41,), 2.0, dtype=tt.float64))
    model.zero_grad()
    with model.no_sync():
        model(batches(10)[0][0]).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    model(batches(10)[0][0]).sum().backward()
    assert model.clip_grad_norm_(1.0).item() > 1.0


def prefetched(rank: int, size: int) -> None:
    """From the second iteration on, the group that follows is on its way while one is used, in both directions; and no other is whole."""
    model = nn.Sequential(*[fully_shard(nn.Linear(6, 6)) for _ in range(4)])
    fully_shard(model)
    groups, seen = [layer._sharding.group for layer in model], []

    def look(i: int, *given: Any) -> None:
        seen.append((i, [k for k, g in enumerate(groups) if g.is_whole], [k for k, g in enumerate(groups) if g.is_coming]))

    for i, layer in enumerate(model):
        layer.register_forward_pre_hook(functools.partial(look, i))
        layer.register_forward_hook(lambda m, args, y, i=i: y.register_hook(functools.partial(look, i)) and None)
    for _ in range(2):
        seen.clear()
        model(tt.ones(2, 6)).sum().backward()
    forward = [(i, [i], [i + 1] if i < 3 else []) for i in range(4)]
    assert seen == forward + [(i, [i], [i - 1] if i else []) for i in reversed(range(4))], seen
    assert not any(model._sharding.schedule._missing.values())


class Mesh:
    """Two dimensions of processes: (replicated, sharded)."""

    ndim = 2

    def __init__(self, rank: int, size: int) -> None:
        half = size // 2
        rows = [dist.new_group([i * half + k for k in range(half)]) for i in range(2)]
        columns = [dist.new_group([i * half + k for i in range(2)]) for k in range(half)]
        self.groups = (columns[rank % half], rows[rank // half])

    def get_group(self, dim: int) -> Any:
        return self.groups[dim]


def replicated(rank: int, size: int) -> None:
    """Shared out among some processes and the same on others; one group of two modules; some parameters left alone."""
    mesh, wanted = Mesh(rank, size), alone(Mlp, "adamw")
    model = sharded(Mlp, mesh=mesh)
    train(model, optimizer_of(model, "adamw"), batches(10), part(rank, size))
    same(full_state_dict(model), wanted, 1e-9)
    assert model.layers[0].weight.device_mesh is mesh
    assert model.layers[0].weight.shape[0] == -(-41 // (size // 2)) or rank % (size // 2)
    model = Mlp()
    fully_shard([model.layers[0], model.layers[2], model.layers[3]])
    outside = {model.layers[5].weight, model.layers[5].bias}
    for nested in (False, True):
        if nested:
            fully_shard(model, ignored_params=outside)
        model.zero_grad()
        plain = Mlp()
        for m in (model, plain):
            m(batches(10)[0][0]).pow(2).mean().backward()
        found = [p.grad.full_tensor() if isinstance(p, fsdp.Sharded) else p.grad for p in model.parameters()]
        for g, q in zip(found, plain.parameters(), strict=True):
            assert tt.allclose(g, q.grad, atol=1e-12)
        assert all(not isinstance(p, fsdp.Sharded) for p in outside)


def failed(rank: int, size: int) -> None:
    """A backward that failed leaves nothing behind."""
    model, plain = sharded(Former), Former()
    x = batches(6)[0][0]
    seen = []
    handle = model.blocks[1].down.register_full_backward_hook(lambda *given: seen.append(1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(x).pow(2).mean().backward()
    assert seen == [1]
    handle.remove()
    model.zero_grad()
    for m in (model, plain):
        m(x).pow(2).mean().backward()
    same({k: p.grad.full_tensor() for k, p in model.named_parameters()}, {k: p.grad for k, p in plain.named_parameters()}, 1e-12)


def on_gpu(rank: int, size: int) -> None:
    """On a GPU memory is given back after backward only, and who asks for more is told."""
    plain, x = Mlp(tt.float32), batches(10, tt.float32)[0][0]
    model = Mlp(tt.float32).cuda()
    with pytest.raises(NotImplementedError, match=r"give reshard_after_forward=False"):
        fully_shard(model.layers[0], reshard_after_forward=True)
    assert not any(isinstance(p, fsdp.Sharded) for p in model.parameters()), "what was refused has changed nothing"
    assert FullyShardedDataParallel(nn.Linear(2, 2), device_id=0).module.weight.is_cuda
    fully_shard(model.layers[3])
    fully_shard(model)
    with pytest.raises(NotImplementedError, match=r"Linear is on cuda:0.*give reshard_after_forward=False"):
        model(x.cuda())
    model = Mlp(tt.float32).cuda()
    for one in [*model.parts(), model]:
        fully_shard(one, reshard_after_forward=False)
    ways = ((model, tt.optim.SGD(model.parameters(), lr=0.1)), (plain, tt.optim.SGD(plain.parameters(), lr=0.1)))
    zero = Mlp(tt.float32).cuda()
    shared = ZeroRedundancyOptimizer(zero.parameters(), tt.optim.SGD, parameters_as_bucket_view=True, shard_gradients=True, lr=0.1)
    for m, optimizer in (*ways, (zero, shared)):
        for _ in range(2):
            optimizer.zero_grad()
            m(x.to(next(m.parameters()).device)).pow(2).sum().backward()
            optimizer.step()
    for found in (full_state_dict(model, cpu_offload=True), {k: v.cpu() for k, v in zero.state_dict().items()}):
        same(found, plain.state_dict(), 1e-4)


def refused(rank: int, size: int) -> None:
    plain = nn.Linear(4, 4)
    for settings, said in (
        ({"reshard_after_forward": 2}, "shards of a smaller group"),
        ({"offload_policy": fsdp.CPUOffloadPolicy()}, "CPUOffloadPolicy is not in tritensor"),
        ({"shard_placement_fn": lambda p: None}, "shard_placement_fn is not in tritensor"),
    ):
        with pytest.raises(NotImplementedError, match=said):
            fully_shard(plain, **settings)
    with pytest.raises(TypeError, match="fully_shard: mesh is 3; give a DeviceMesh"):
        fully_shard(plain, mesh=3)
    with pytest.raises(TypeError, match="param_dtype is 'bfloat16'; give a type of tensors"):
        fsdp.MixedPrecisionPolicy(param_dtype="bfloat16")
    with pytest.raises(TypeError, match="sharding_strategy is 'FULL_SHARD'; give one of ShardingStrategy"):
        FullyShardedDataParallel(plain, sharding_strategy="FULL_SHARD")
    with pytest.raises(ValueError, match="containers that do not implement forward: ModuleList"):
        fully_shard(nn.ModuleList([plain]))
    model = fully_shard(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)))
    with pytest.raises(AssertionError, match="has already been applied"):
        fully_shard(model)
    with pytest.raises(AssertionError, match="FSDP does not support deepcopy"):
        copy.deepcopy(model)
    assert type(model[:1]) is nn.Sequential
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    fully_shard(tied[0])
    with pytest.raises(ValueError, match=r"1.weight is the same parameter as weight of a module that is sharded already"):
        fully_shard(tied)
    scalar = nn.Linear(2, 2)
    scalar.factor = nn.Parameter(tt.tensor(1.0))
    with pytest.raises(ValueError, match=r"doesn't support scalar parameters\. Change factor"):
        fully_shard(scalar)
    model(tt.ones(2, 4)).sum().backward()
    before, matrices = full_state_dict(model), [p for p in model.parameters() if p.ndim == 2]
    for whole in (tt.optim.LBFGS(model.parameters()), tt.optim.Adafactor(model.parameters()), tt.optim.Muon(matrices)):
        with pytest.raises(NotImplementedError, match=rf"{type(whole).__name__}\.step: a parameter of \(4, 4\) is a shard, rows"):
            whole.step(lambda: model(tt.ones(2, 4)).sum())
    same(full_state_dict(model), before, 0.0)
    optimizer = tt.optim.SGD(model.parameters(), lr=0.1)
    model.set_reshard_after_forward(True)
    loss = model(tt.ones(2, 4)).sum()
    for p in model.parameters():
        p.grad = tt.ones_like(p)
    optimizer.step()
    with pytest.raises(GradError, match="changed between forward and backward"):
        loss.backward()
    model(tt.ones(2, 4)).sum().backward()
    with pytest.raises(NotImplementedError, match="set_is_last_backward: not in tritensor"):
        model.set_is_last_backward(True)


if __name__ == "__main__":
    run([outside, mixed, wrapped, prefetched, replicated, failed, refused, on_gpu])
