"""Ranks that die, hang or disagree: what every other rank says about it. The first argument names the fault."""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time
from pathlib import Path

import tritensor as tt
import tritensor.distributed as dist

SAID = Path(os.environ["SAID"])  # where each rank leaves a file once it has said what is wrong


def hang() -> None:
    """Do nothing of what the others wait for until they have said so, and then go."""
    until = time.monotonic() + 90
    while not all((SAID / str(other)).exists() for other in (0, 2)) and time.monotonic() < until:
        time.sleep(0.05)
    os._exit(0)


def impatient() -> None:
    """From now on calls wait 2 seconds; that all have started may take longer."""
    dist.GroupMember.WORLD.backends["cpu"].set_timeout(2.0)


def died(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tt.ones(4))


def hangs(rank: int) -> None:
    if rank == 1:
        hang()
    dist.all_reduce(tt.ones(4))


def hangs_in_message(rank: int) -> None:
    if rank == 1:
        hang()
    dist.recv(tt.ones(4), src=1)


def hangs_longer(rank: int) -> None:
    """A wait that says itself how long."""
    if rank == 1:
        hang()
    dist.irecv(tt.ones(4), src=1).wait(datetime.timedelta(seconds=3))


def hangs_behind(rank: int) -> None:
    if rank == 1:
        hang()
    dist.all_reduce(tt.ones(4), async_op=True).wait()


def late(rank: int) -> None:
    """Later than the calls that are compared in any case."""
    for _ in range(80):
        dist.all_reduce(tt.ones(4))
    hangs(rank)


def late_death(rank: int) -> None:
    """The same."""
    for _ in range(80):
        dist.all_reduce(tt.ones(4))
    died(rank)


def uncaught(rank: int) -> None:
    if rank == 1:
        raise KeyError("nobody catches this")
    dist.all_reduce(tt.ones(4))


def leaves(rank: int) -> None:
    if rank == 1:
        sys.exit(0)
    dist.all_reduce(tt.ones(4))


def other_op(rank: int) -> None:
    t = tt.ones(4)
    if rank == 1:
        dist.broadcast(t, src=0)
    else:
        dist.all_reduce(t)


def other_shape(rank: int) -> None:
    dist.all_reduce(tt.ones(4 + (rank == 1)))


def other_type(rank: int) -> None:
    dist.all_reduce(tt.ones(4, dtype=tt.float64 if rank == 1 else tt.float32))


def other_order_later(rank: int) -> None:
    for _ in range(80):
        dist.all_reduce(tt.ones(4))
    other_op(rank)


def again(rank: int) -> None:
    """The group is of no more use after a failure, and says why."""
    try:
        hangs(rank)
    except dist.RankFailedError:
        dist.all_reduce(tt.ones(4))


def forked(rank: int) -> None:
    child = os.fork()
    if child == 0:
        assert dist.get_rank() == rank  # which a worker that was forked may ask
        try:
            dist.all_reduce(tt.ones(4))
        except dist.DistError as error:
            print(f"rank {rank} DistError []: {error}\n", end="", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def forked_anew(rank: int) -> None:
    """A group of its own is nothing for a fork, either."""
    child = os.fork()
    if child == 0:
        dist.destroy_process_group()
        try:
            dist.init_process_group("mpi")
        except dist.DistError as error:
            print(f"rank {rank} DistError []: {error}\n", end="", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def wrong_device(rank: int) -> None:
    dist.all_reduce(tt.ones(4, device="cuda"))


def captured(rank: int) -> None:
    with tt.cuda.graph(tt.cuda.CUDAGraph()):
        dist.all_reduce(tt.ones(4))


def negative_tag(rank: int) -> None:
    dist.isend(tt.ones(1), (rank + 1) % 3, tag=-1)


def parts(rank: int) -> None:
    dist.all_gather_into_tensor(tt.ones(5), tt.ones(2))


def not_root(rank: int) -> None:
    dist.gather(tt.ones(1), [tt.ones(1) for _ in range(3)], dst=1)


def float8(rank: int) -> None:
    dist.all_reduce(tt.ones(4).to(tt.float8_e5m2))


def no_order(rank: int) -> None:
    dist.all_reduce(tt.ones(4, dtype=tt.complex64), dist.ReduceOp.MAX)


def unfitting_split(rank: int) -> None:
    dist.all_to_all_single(tt.ones(4), tt.ones(4))


def nothing(rank: int) -> None:
    """The fault lies in how the group is made."""


absent = absent_later = other_size = other_version = other_script = unknown_backend = nothing


def begin(fault: str, rank: int) -> None:
    """init_process_group, or what is wrong with it."""
    timeout = datetime.timedelta(seconds={"absent": 2, "absent_later": 5}.get(fault, 60))
    if fault == "absent" and rank == 1:
        hang()
    if fault == "absent_later" and rank == 1:
        from mpi4py import MPI

        assert MPI.Is_initialized()
        hang()
    if fault == "other_version" and rank == 1:
        tt.__version__ = "0.0.0"
    if fault == "other_script" and rank == 1:
        sys.argv[0] = "other.py"
    if fault == "other_size":
        dist.init_process_group("mpi", rank=min(rank, 1), world_size=2, timeout=timeout)
    dist.init_process_group("ucc" if fault == "unknown_backend" else "mpi", timeout=timeout)


def main() -> None:
    fault, rank = sys.argv[1], int(os.environ["PMI_RANK"])
    begun = time.monotonic()
    try:
        begin(fault, rank)
        impatient()
        globals()[fault](rank)
    except (dist.DistError, ValueError, TypeError, RuntimeError) as error:
        named = getattr(error, "ranks", ())
        print(f"rank {rank} {type(error).__name__} {list(named)}: {error}\n", end="", flush=True)
        assert time.monotonic() - begun < 90
        (SAID / str(rank)).touch()
        os._exit(3)
    os._exit(0)


if __name__ == "__main__":
    main()
