"""Groups, collectives and DistributedDataParallel among one process."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn


@pytest.fixture
def world() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_the_life_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dist.is_available()
    assert not dist.is_initialized()
    assert dist.group.WORLD is None
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group(backend="cpu:gloo,cuda:nccl", timeout=datetime.timedelta(minutes=1))
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "cpu:gloo,cuda:nccl")
    assert dist.group.WORLD is dist.GroupMember.WORLD is not None
    with pytest.raises(ValueError, match="initialize the default process group twice"):
        dist.init_process_group("gloo")
    part = dist.new_group([0])
    outside = dist.new_group([])
    assert (dist.get_rank(part), dist.get_world_size(outside), dist.get_process_group_ranks(part)) == (0, -1, [0])
    assert dist.all_reduce(tt.ones(1), group=outside) is None
    assert (dist.get_global_rank(part, 0), dist.get_group_rank(part, 0)) == (0, 0)
    dist.destroy_process_group(part)
    assert dist.is_initialized()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("gloo", init_method="tcp://localhost:29500?rank=0&world_size=1")
    dist.destroy_process_group()


def test_every_collective_among_one(world: None) -> None:
    x = tt.arange(4.0)
    for op in (op for op in dist.ReduceOp if not op.name.startswith("B")):
        y = x.clone()
        assert dist.all_reduce(y, op) is None
        assert tt.equal(y, x)
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    assert work.wait()
    assert work.is_completed()
    dist.broadcast(x, src=0)
    dist.reduce(x, dst=0)
    got = [tt.zeros(4)]
    dist.all_gather(got, x)
    assert tt.equal(got[0], x)
    got = [tt.zeros(4)]
    dist.gather(x, got)
    assert tt.equal(got[0], x)
    for call in (dist.all_gather_into_tensor, dist.reduce_scatter_tensor, dist.all_to_all_single):
        out = tt.zeros(2, 2)
        call(out, x)  # type: ignore[operator]
        assert tt.equal(out, x.reshape(2, 2))
    out = tt.zeros(4)
    dist.scatter(out, [x])
    assert tt.equal(out, x)
    out = tt.zeros(4)
    dist.reduce_scatter(out, [x])
    assert tt.equal(out, x)
    got = [tt.zeros(4)]
    dist.all_to_all(got, [x])
    assert tt.equal(got[0], x)
    dist.barrier()
    dist.monitored_barrier()


def test_objects_arrive_as_copies(world: None) -> None:
    given = {"loss": [1, 2]}
    got = [None]
    dist.all_gather_object(got, given)
    assert got[0] == given
    assert got[0] is not given
    dist.gather_object(given, got)
    assert got[0] == given
    dist.scatter_object_list(got, [7])
    assert got == [7]
    dist.broadcast_object_list(got, src=0)
    assert got == [7]


def test_communication_hooks_give_futures_that_are_taken(world: None) -> None:
    from tritensor.distributed.algorithms.ddp_comm_hooks import default_hooks

    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    wrapped(tt.ones(1, 2)).sum().backward()
    assert wrapped.module.weight.grad.tolist() == [[1, 1]]


@pytest.mark.parametrize("within", [True, False])
def test_local_sgd_averages_less_from_its_beginning_on(world: None, within: bool) -> None:
    from tritensor.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local

    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    part = dist.new_group([0])
    state = local.PostLocalSGDState(None, part, 2, within)
    wrapped.register_comm_hook(state, local.post_localSGD_hook)
    counted = []
    for _ in range(4):
        wrapped.zero_grad()
        wrapped(tt.ones(1, 2)).sum().backward()
        counted.append(state.iter)
        assert wrapped.module.weight.grad.tolist() == [[1, 1]]
    assert counted == [1, 2, 2, 2]


def test_a_wrapped_module_tells_how_it_is_averaged(world: None) -> None:
    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 3), bucket_cap_mb=1, find_unused_parameters=True)
    told = wrapped._get_ddp_logging_data()
    assert (told["world_size"], told["rank"], told["backend_name"], told["module_name"]) == (1, 0, "gloo", "Linear")
    assert (told["num_parameter_tensors"], told["total_parameter_size_bytes"], told["bucket_cap_bytes"]) == (2, 36, 1 << 20)
    assert (told["find_unused_parameters"], told["static_graph"]) == (1, 0)
    wrapped.require_backward_grad_sync = False  # a program that begins the backward itself
    out = wrapped(tt.ones(1, 2))
    assert wrapped.reducer._rebuild_buckets() is False
    wrapped.reducer.prepare_for_backward([out])
    out.sum().backward()
    assert wrapped.module.bias.grad.tolist() == [1, 1, 1]


def test_a_wrapped_module_trains_as_it_does_bare(world: None) -> None:
    bare = nn.Linear(3, 2)
    model = nn.parallel.DistributedDataParallel(bare, find_unused_parameters=True)
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    x = tt.ones(4, 3)
    assert tt.equal(model(x), bare(x))
    with model.no_sync():
        model(x).sum().backward()
        assert not model.require_backward_grad_sync
    model(x).sum().backward()
    assert tt.equal(bare.weight.grad, tt.full((2, 3), 8.0))
    assert list(tt.data.DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: dist.all_reduce(tt.ones(1), "sum"), TypeError, "all_reduce: op is 'sum'; give a ReduceOp"),
        (lambda: dist.broadcast(tt.ones(1), src=1), ValueError, "broadcast: src 1 is not part of"),
        (lambda: dist.all_gather([tt.ones(2)], tt.ones(3)), RuntimeError, r"tensor_list is float32 \(2,\), the tensor float32 \(3,\)"),
        (lambda: dist.all_gather([], tt.ones(3)), ValueError, "tensor_list holds 0 tensors for 1 process"),
        (lambda: dist.send(tt.ones(1), dst=0), ValueError, "no other process"),
        (lambda: dist.recv(tt.ones(1)), ValueError, "no other process"),
        (lambda: dist.all_reduce([1.0]), TypeError, "all_reduce: Invalid function argument: expected parameter `tensor` of type Tensor"),
        (lambda: dist.new_group([1]), ValueError, "this world has 1 process"),
        (lambda: dist.all_gather_object([None], lambda: 0), TypeError, "cannot be pickled"),
        (lambda: nn.parallel.DistributedDataParallel(nn.ReLU()), RuntimeError, "doesn't have any parameter"),
        (lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]), ValueError, "device_ids"),
        (lambda: dist.all_reduce(tt.ones(1), dist.ReduceOp.BAND), TypeError, "BAND is of the bits of integers, and the tensor is float32"),
        (lambda: dist.reduce_scatter_tensor(tt.ones(1), tt.ones(1), dist.ReduceOp.BXOR), TypeError, "BXOR is of the bits of integers"),
    ],
)
def test_what_is_wrong_is_told(world: None, call: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"rank": 2, "world_size": 2}, ValueError, "rank 2 in a world of 2 processes; give 0 to 1"),
        ({"rank": 1, "world_size": 1}, ValueError, "rank 1 in a world of 1 process"),
        ({"rank": 0, "world_size": 1, "backend": "fast"}, ValueError, "backend 'fast' is not known"),
        ({}, ValueError, "expects the environment variable RANK"),
        ({"init_method": "tcp://localhost:1"}, ValueError, "does not say the world_size"),
        ({"init_method": "magic://"}, ValueError, "give 'env://', 'tcp://host:port' or 'file:///path'"),
        ({"init_method": "magic://", "rank": 0, "world_size": 1}, ValueError, "give 'env://', 'tcp://host:port' or 'file:///path'"),
    ],
)
def test_a_group_that_cannot_be(given: dict[str, object], error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=said):
        dist.init_process_group(**given)  # type: ignore[arg-type]
    assert not dist.is_initialized()


def test_variables_that_are_no_numbers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "1")
        for value in ("first", "", "1.0", "--1"):
            monkeypatch.setenv(variable, value)
            with pytest.raises(
                ValueError, match=f"init_process_group: the environment variable {variable} is '{value}'; give a whole number"
            ):
                dist.init_process_group()
    with pytest.raises(ValueError, match="init_process_group: rank is 'x'; give a whole number"):
        dist.init_process_group(init_method="tcp://localhost:1?rank=x&world_size=1")
    monkeypatch.setenv("LOCAL_RANK", "none")
    with pytest.raises(ValueError, match="local rank: the environment variable LOCAL_RANK is 'none'; give a whole number"):
        dist.get_node_local_rank()


def test_without_a_group() -> None:
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group, lambda: dist.all_reduce(tt.ones(1))):
        with pytest.raises(ValueError, match="no process group has been initialised"):
            call()  # type: ignore[operator]
    with pytest.raises(ValueError, match="init_process_group first"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match=r"distributed.ProcessGroupGloo: not in tritensor"):
        dist.ProcessGroupGloo(0)


def test_record_of_a_script_that_a_launcher_may_start() -> None:
    record = tt.distributed.elastic.multiprocessing.errors.record
    assert record(len) is len


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_buckets_hold_gradients_of_every_layout(world: None, device: str) -> None:
    """On both devices: gradients lie in the buckets, as the parameters lie; those that a program kept are left alone."""
    from tritensor.distributed.data_parallel.buckets import divide_into

    tt.manual_seed(0)
    inner = nn.Sequential(nn.Conv2d(2, 4, 3).to(memory_format=tt.channels_last), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)).to(device)
    bare = nn.Sequential(nn.Conv2d(2, 4, 3).to(memory_format=tt.channels_last), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)).to(device)
    bare.load_state_dict(inner.state_dict())
    model = nn.parallel.DistributedDataParallel(inner, bucket_cap_mb=0.0001)
    x = tt.arange(64.0, device=device).reshape(2, 2, 4, 4).sin()
    for _ in range(2):  # in the second pass gradients are added to what is there
        model(x).pow(2).sum().backward()
        bare(x).pow(2).sum().backward()
        for p, q in zip(model.parameters(), bare.parameters(), strict=True):
            assert tt.allclose(p.grad, q.grad, atol=1e-4)
            assert p.grad.stride() == q.grad.stride()
    assert len(model.reducer.buckets) > 1
    kept = [p.grad for p in model.parameters()]
    values = [g.clone() for g in kept]
    model.zero_grad()
    model(3 * x).pow(2).sum().backward()
    assert all(tt.equal(a, b) for a, b in zip(kept, values, strict=True))
    memory = [p.grad.data_ptr() for p in model.parameters()]
    model.zero_grad()
    model(x).pow(2).sum().backward()
    assert [p.grad.data_ptr() for p in model.parameters()] == memory  # nobody held it: the same memory again
    out = tt.zeros(3, device=device)
    divide_into(tt.tensor([2.0, 4.0, 6.0], device=device)._array, 2, out._array)
    assert out.tolist() == [1.0, 2.0, 3.0]


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"init_process_group: needs mpi4py, which is not installed: pip install 'tritensor\[mpi\]'"
    ):
        dist.init_process_group("mpi", rank=0, world_size=2)
    assert not dist.is_initialized()


@pytest.mark.usefixtures("world")
def test_a_modules_values_are_made_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.distributed.utils' private way, which Lightning calls before it runs a model without gradients."""
    from tritensor.torch_compat.modules.distributed import module_states

    sent: list[list[tuple[int, ...]]] = []
    monkeypatch.setattr(module_states, "broadcast_all", lambda tensors, group, root: sent.append([tuple(t.shape) for t in tensors]))
    model = nn.BatchNorm1d(3)
    for buffers in (True, False):
        dist.utils._sync_module_states(
            model, dist.group.WORLD, 1 << 20, src=0, params_and_buffers_to_ignore={"bias"}, broadcast_buffers=buffers
        )
    assert sent == [[(3,), (3,), (3,), ()], [(3,)]]
