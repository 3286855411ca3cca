"""init_process_group("nccl") on two ranks that MPI brings together, over stubs of the driver and of NCCL: which calls NCCL gets, and who is refused."""

from __future__ import annotations

import datetime

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tests.stub.nccl import control


def main() -> None:
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    made = control.calls("ncclCommInitRankConfig")
    assert [(s.rank, s.size) for s in made] == [(rank, size)]
    t = tt.tensor([1.0, 2.0, 3.0], device="cuda")
    dist.all_reduce(t)
    dist.all_reduce(t, dist.ReduceOp.AVG, async_op=True).wait()
    seen = control.calls("ncclAllReduce")
    assert [(s.number, s.datatype, s.op, s.send, s.receive) for s in seen] == [
        (3, control.FLOAT32, op, t.data_ptr(), t.data_ptr()) for op in (control.SUM, control.AVG)
    ]
    with pytest.raises(dist.DistError, match=r"is not the same on all ranks: rank \d: all_reduce float32"):
        dist.all_reduce(t, dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX)
    with pytest.raises(TypeError, match=r"all_reduce: the tensor is on cpu, and the group's backend 'nccl' is for cuda"):
        dist.all_reduce(tt.ones(3))
    print(f"rank {rank} done\n", end="", flush=True)


def both() -> None:
    """The group with a backend for each device, and a group of one of its ranks."""
    dist.init_process_group("cpu:mpi,cuda:nccl", timeout=datetime.timedelta(seconds=20))
    rank = dist.get_rank()
    total = tt.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [2.0, 2.0]
    dist.all_reduce(tt.tensor([1, 2], device="cuda"))
    assert control.calls("ncclAllReduce")[-1].datatype == control.INT64
    part = dist.new_group([1])
    assert len(control.calls("ncclCommSplit")) == 1
    if rank == 1:
        dist.broadcast(tt.tensor([1.0], device="cuda"), src=1, group=part)
        assert len(control.calls("ncclBroadcast")) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    control._library()  # before nccl4py looks for one
    both()
    control.forget()
    main()
