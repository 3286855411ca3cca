"""Messages between two ranks, objects, groups of some ranks, asynchronous calls: each as PyTorch has it."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed as dist


def point_to_point(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    got = tt.zeros(3)
    works = [dist.isend(tt.full((3,), float(rank)), right), dist.irecv(got, left)]
    for work in works:
        assert work is not None
        assert work.wait()
    assert got.tolist() == [left] * 3
    got, columns = tt.zeros(4, 2), tt.zeros(4, 2)
    columns[:, 0] = rank + 1.0
    ops = [dist.P2POp(dist.irecv, got[:, 1], left), dist.P2POp(dist.isend, columns[:, 0], right)]
    for work in dist.batch_isend_irecv(ops if rank % 2 else ops[::-1]):
        work.wait()
    assert got[:, 1].tolist() == [left + 1.0] * 4
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            got = tt.zeros(1, dtype=tt.bfloat16)
            sender = dist.recv(got)  # from any
            assert got.item() == sender
            seen.add(sender)
        assert seen == set(range(1, size))
        for r in range(1, size):  # by tag, against the order in which they were sent
            second, first = tt.zeros(2), tt.zeros(2)
            dist.recv(second, r, tag=2)
            dist.recv(first, r, tag=1)
            assert (first.tolist(), second.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    else:
        dist.send(tt.full((1,), float(rank), dtype=tt.bfloat16), 0)
        dist.send(tt.ones(2), 0, tag=1)
        dist.send(2 * tt.ones(2), 0, tag=2)
    if rank < 2:
        small = tt.zeros(2)
        if rank == 0:
            dist.send(tt.ones(3), 1)
            dist.send(tt.ones(1), 1)
        else:
            for said in ("more were sent", "sent 4"):
                with pytest.raises(ValueError, match=said):
                    dist.recv(small, 0)
    dist.barrier()


def objects(rank: int, size: int) -> None:
    mine = {"rank": rank, "loss": 0.5 * rank, "text": "ü" * rank, "parts": [None, True, (1, {2})], "array": np.arange(rank)}
    got = [None] * size
    dist.all_gather_object(got, mine)
    for r, one in enumerate(got):
        assert one["rank"] == r
        assert one["parts"] == [None, True, (1, {2})]
        assert one["array"].tolist() == list(range(r))
    got = [None] * size if rank == 1 else None
    dist.gather_object(["x" * rank], got, dst=1)
    assert got == ([["x" * r] for r in range(size)] if rank == 1 else None)
    shared = ["a", {"b": 1}, tt.arange(3)] if rank == 1 else [None] * 3
    dist.broadcast_object_list(shared, src=1)
    assert shared[:2] == ["a", {"b": 1}]
    assert shared[2].tolist() == [0, 1, 2]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None, src=0)
    assert out == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    elif rank == 1:
        taken = [None, None]
        assert dist.recv_object_list(taken, 0) == 0
        assert taken == [1, "two"]


def groups(rank: int, size: int) -> None:
    ends = dist.new_group([0, size - 1])
    rest = dist.new_group(list(range(1, size)))
    turned = dist.new_group([1, 0], sort_ranks=False)
    if rank in (0, size - 1):
        assert dist.get_rank(ends) == (0 if rank == 0 else 1)
        assert dist.get_process_group_ranks(ends) == [0, size - 1]
        t = tt.tensor([float(rank + 1)])
        dist.all_reduce(t, group=ends)
        assert t.item() == 1 + size
        t = tt.tensor([float(rank)])
        dist.broadcast(t, src=size - 1, group=ends)
        assert t.item() == size - 1
    else:
        assert ends == dist.GroupMember.NON_GROUP_MEMBER
        assert dist.all_reduce(tt.ones(1), group=ends) is None
    if rank >= 1:
        t = tt.ones(1)
        dist.all_reduce(t, group=rest)
        assert t.item() == size - 1
        with pytest.raises(ValueError, match="src 0 is not part of"):
            dist.broadcast(t, src=0, group=rest)
    if rank < 2:
        assert dist.get_rank(turned) == 1 - rank
        t = tt.tensor([float(rank)])
        dist.broadcast(t, group_src=0, group=turned)
        assert t.item() == 1.0
    dist.barrier()


def several(rank: int, size: int) -> None:
    """Several tensors at once, and the world in halves."""
    tensors = [tt.full((n,), float(rank)) for n in (1, 3)]
    dist.all_reduce_coalesced(tensors)
    future = dist.all_reduce_coalesced(tensors, dist.ReduceOp.MAX, async_op=True)
    assert future.wait() == tensors
    assert [t.tolist() for t in tensors] == [[size * (size - 1) / 2] * n for n in (1, 3)]
    outs = [[tt.zeros(2), tt.zeros(1)] for _ in range(size)]
    dist.all_gather_coalesced(outs, [tt.full((2,), float(rank)), tt.full((1,), 10.0 + rank)])
    assert [[t.tolist() for t in row] for row in outs] == [[[r, r], [10.0 + r]] for r in range(size)]
    assert dist.get_backend_config() == "cpu:mpi"
    if size % 2 == 0:
        mine, both = dist.new_subgroups(size // 2)
        t = tt.tensor([float(rank)])
        dist.all_reduce(t, group=mine)
        half = range(size // 2) if rank < size // 2 else range(size // 2, size)
        assert t.item() == sum(half)
        assert len(both) == 2
    with pytest.raises(ValueError, match=r"ranks \[0\] stand in two subgroups"):
        dist.new_subgroups_by_enumeration([[0, 1], [0]])


def asynchronous(rank: int, size: int) -> None:
    tensors = [tt.full((1000 * (i + 1),), float(rank)) for i in range(8)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work, t in zip(reversed(works), reversed(tensors), strict=True):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert work.result()[0] is t
        assert t.sum().item() == t.numel() * size * (size - 1) / 2
    column = tt.zeros(4, 2)
    column[:, 1] = rank
    work = dist.all_reduce(column[:, 1], async_op=True)
    told = []
    future = work.get_future().then(lambda f: told.append(f.value()[0].sum().item()))
    work.wait()
    assert told == [4 * size * (size - 1) / 2]
    assert future.done()
    outs = [tt.zeros(2) for _ in range(size)]
    work = dist.all_gather(outs, tt.full((2,), float(rank)), async_op=True)
    work.wait()
    assert [o.tolist() for o in outs] == [[r, r] for r in range(size)]
    dist.barrier(async_op=True).wait()
    works = [dist.all_reduce(tt.ones(1 << 20), async_op=True) for _ in range(3)]  # dropped without wait: they end by themselves
    while not all(w.is_completed() for w in works):
        np.dot(np.ones((50, 50)), np.ones((50, 50)))


def main() -> None:
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (point_to_point, objects, groups, several, asynchronous):
        check(rank, size)
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("mpi")  # and once more
    t = tt.ones(1)
    dist.all_reduce(t)
    assert t.item() == size
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
