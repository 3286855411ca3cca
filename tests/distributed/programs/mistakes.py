"""Mistakes of programs on ranks, told before anything is sent, on all ranks where they disagree; and futures whose callbacks fail."""

from __future__ import annotations

import datetime

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.work import Future
from tritensor.ground.errors import DistError, GradError, ShapeError


def destroyed_groups(rank: int, size: int) -> None:
    group = dist.new_group()
    dist.all_reduce(tt.ones(2), group=group)
    dist.destroy_process_group(group)
    for call in (
        lambda: dist.all_reduce(tt.ones(2), group=group),
        lambda: dist.barrier(group),
        lambda: dist.recv(tt.ones(2), 1 - rank, group=group) if rank < 2 else dist.barrier(group),
        lambda: dist.all_gather_object([None] * size, 1, group),
    ):
        with pytest.raises(DistError, match=r"<ProcessGroup group 1 of ranks .*> was destroyed by destroy_process_group; make it anew"):
            call()
    with pytest.raises(ValueError, match=r"Invalid process group: .*destroy each group once"):
        dist.destroy_process_group(group)
    with pytest.raises(TypeError, match=r"new_group: timeout is 5; give a datetime\.timedelta"):
        dist.new_group(timeout=5)
    with pytest.raises(NotImplementedError, match=r"use_local_synchronization=True, by which ranks \[0\] alone would call it"):
        dist.new_group([0], use_local_synchronization=True)
    dist.barrier()


def sizes(rank: int, size: int) -> None:
    """Each process gives the next one more than that takes; ranks differ in it, so that only a comparison finds it."""
    give = [1] * size
    give[(rank + 1) % size] += 1
    with pytest.raises(
        ShapeError, match=r"all_to_all_single .*: rank 0 gives rank 1 2 elements, which takes 1 from it; make the sizes agree"
    ):
        dist.all_to_all_single(tt.zeros(size), tt.ones(size + 1), None, give)
    given = [tt.ones(n) for n in give]
    with pytest.raises(ShapeError, match=r"all_to_all .*: rank 0 gives rank 1 2 elements, which takes 1 from it"):
        dist.all_to_all([tt.zeros(1) for _ in range(size)], given)
    dist.barrier()


def messages(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    with pytest.raises(ValueError, match="batch_isend_irecv: peer 77 is not part of"):
        dist.batch_isend_irecv([dist.P2POp(dist.isend, tt.full((1,), -1.0), right), dist.P2POp(dist.isend, tt.ones(1), 77)])
    got = tt.zeros(1)
    ops = [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, tt.full((1,), float(rank)), right, dist.group.WORLD)]
    for work in dist.batch_isend_irecv(ops):  # None and the world are one group
        work.wait()
    assert got.item() == left  # and nothing of the refused batch has come
    dist.barrier()


def objects(rank: int, size: int) -> None:
    right = (rank + 1) % size
    for call in (dist.broadcast_object_list, lambda given: dist.send_object_list(given, right), dist.recv_object_list):
        with pytest.raises(ValueError, match=r"_object_list: object_list is \[\]; give a list of at least one object"):
            call([])
    if rank == 0:
        with pytest.raises(ValueError, match="object_gather_list has 1 entries for"):
            dist.gather_object(1, [None])
    else:
        with pytest.raises(ValueError, match="must NOT be specified on non-destination ranks"):
            dist.gather_object(1, [None] * size)
    circle: list[object] = [rank]
    circle.append(circle)
    deep: list[object] = [rank]
    for _ in range(300):
        deep = [deep]
    got: list[object] = [None] * size
    dist.all_gather_object(got, {"circle": circle, "deep": deep})
    for r, one in enumerate(got):
        assert one["circle"][0] == r
        assert one["circle"][1] is one["circle"]
        inner = one["deep"]
        while isinstance(inner[0], list):
            inner = inner[0]
        assert inner == [r]


def futures(rank: int, size: int) -> None:
    ran: list[int] = []

    def fails(before: Future) -> None:
        ran.append(rank)
        raise KeyError("of the callback")

    work = dist.all_reduce(tt.ones(2), async_op=True)
    first = work.get_future()
    second = first.then(fails)
    third = second.then(lambda before: before.value())
    seen: list[float] = []
    first.add_done_callback(lambda done: seen.append(done.value()[0].sum().item()))
    assert work.wait()  # the callback's error is not the work's
    assert first.wait()[0].tolist() == [size] * 2
    for _ in range(2):
        for future in (second, third):
            with pytest.raises(KeyError, match="of the callback"):
                future.wait()
    assert ran == [rank]
    assert seen == [2.0 * size]
    late = first.then(fails)  # of what is done: no error here, either
    with pytest.raises(KeyError, match="of the callback"):
        late.value()
    both = dist.all_reduce_coalesced([tt.ones(1), tt.ones(2)], async_op=True)
    assert both.then(lambda done: sum(t.sum().item() for t in done.value())).wait() == 3.0 * size
    own = Future()
    chained = own.then(lambda done: done.value() + 1)
    with pytest.raises(ValueError, match="nobody has given this future a value"):
        chained.wait()
    own.set_result(1)
    assert chained.done()
    assert chained.wait() == 2
    own = Future()
    own.set_exception(ValueError("given"))
    with pytest.raises(ValueError, match="given"):
        own.wait()


def batch_norm(rank: int, size: int) -> None:
    norm = nn.SyncBatchNorm(3)
    with pytest.raises(ShapeError, match=r"input \(4, 2\) has 2 channels in dimension 1, the layer num_features=3; make them agree"):
        norm(tt.ones(4, 2))
    with pytest.raises(ShapeError, match=r"Expected more than 1 value per channel when training, .* together have 1"):
        norm(tt.ones(1 if rank == 0 else 0, 3))
    assert norm.running_var.tolist() == [1.0] * 3
    x = tt.randn(4, 3, requires_grad=True)
    (grad,) = tt.autograd.grad(norm(x).pow(3).sum(), x, create_graph=True)
    with pytest.raises(GradError, match="once_differentiable"):  # and not without what the other processes add to it
        (grad.pow(2).sum() + x.sum()).backward()


def main() -> None:
    dist.init_process_group("mpi", timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (destroyed_groups, sizes, messages, objects, futures, batch_norm):
        check(rank, size)
    dist.destroy_process_group()
    dist.init_process_group("mpi")
    assert dist.get_pg_count() == 1
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
