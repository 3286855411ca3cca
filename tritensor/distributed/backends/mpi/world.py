"""The world of MPI: all processes that were started together find one another and compare the program that they run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tritensor.distributed.backends.mpi.adoption import adopt, is_started
from tritensor.distributed.backends.mpi.backend import MpiBackend
from tritensor.distributed.backends.mpi.library import abort_on_errors, is_inherited, is_loaded, is_lost, mark_lost, mpi, require
from tritensor.distributed.backends.mpi.peers import Process, describe_process, has_spare_core
from tritensor.distributed.backends.mpi.pending import PAUSE, PAUSE_BESIDE, driver
from tritensor.ground.errors import ArgumentError, DistError, RankFailedError

_TAG = 7
_HOW = "python -m tritensor.launch -n {size} {script}"


def describe_script() -> tuple[str, str]:
    """(name, digest) of the program that runs; of an interactive one the digest is empty."""
    name = sys.argv[0] if sys.argv and sys.argv[0] else "-c"
    path = Path(name)
    return path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""


def join_world(version: str, rank: int, size: int, seconds: float, meeting: str | None) -> MpiBackend:
    """A backend over all processes; `rank` and `size` are what the environment or the program say, `meeting` what all of them know besides.

    Raises DistError where the program was not started as `size` processes, or the processes differ in program or versions, and
    RankFailedError where one does not come within `seconds`.
    """
    # MPI_Finalize was given up, and MPI_Init cannot be called a second time.
    if is_lost():
        raise DistError("init_process_group: a process was lost, and MPI cannot go on without it; start the program anew")
    if is_inherited():
        raise DistError(
            "init_process_group: this process was forked from one that has started MPI, and MPI does not survive that; fork before "
            "init_process_group, or start processes by spawn"
        )
    require("init_process_group")
    # Ranks of mpiexec or Slurm have their place in the world already; others need one before MPI starts.
    if not is_loaded() and not is_started():
        adopt(meeting, rank, size, seconds)
    MPI = mpi("init_process_group", seconds)
    comm = MPI.COMM_WORLD
    found = comm.Get_size()
    # MPI's world is what its launcher has made, whatever the program or the environment says.
    if found != size:
        how = _HOW.format(size=size, script=describe_script()[0])
        alone = "" if is_started() else " (this one alone, when the program or a library imported mpi4py.MPI, and MPI's world cannot grow)"
        raise DistError(
            f"init_process_group: world_size is {size}, and MPI has started {found} process{'es' * (found > 1)}{alone}; start them together: {how}, or by "
            f"mpiexec -n {size} or srun -n {size}"
        )
    abort_on_errors()
    here = describe_process(rank)
    mine = {"rank": here.rank, "process": here, "script": describe_script(), "versions": [version, platform.python_version()], "size": size}
    table = _exchange(MPI, comm, mine, seconds)
    _check_same(table)
    ranks = [entry["rank"] for entry in table]
    if sorted(ranks) != list(range(size)):
        raise ArgumentError(f"init_process_group: the ranks of {size} processes are {ranks}; give each of 0 to {size - 1} once")
    members = sorted((Process(*entry["process"]) for entry in table), key=lambda p: p.rank)
    driver.pause = PAUSE if has_spare_core(here, members) else PAUSE_BESIDE
    return MpiBackend(comm.Split(0, here.rank), members, seconds)


def _exchange(MPI: Any, comm: Any, mine: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
    """Every process' entry, by way of process 0, which tells the others too when somebody is missing."""
    number, size = comm.Get_rank(), comm.Get_size()
    # A star over process 0: a collective would hang without a message where a process does not come.
    if number:
        text = json.dumps(mine).encode()
        sent = comm.Isend([text, MPI.BYTE], 0, _TAG)
        status = MPI.Status()
        # Process 0 gives up after `seconds` and names who is missing, an answer worth waiting for.
        late = time.monotonic() + seconds + 5
        _wait_until(lambda: comm.Iprobe(source=0, tag=_TAG, status=status), late)
        if not comm.Iprobe(source=0, tag=_TAG, status=status):
            _raise_missing([0], seconds)
        got = bytearray(status.Get_count(MPI.BYTE))
        comm.Recv([got, MPI.BYTE], 0, _TAG)
        sent.Wait()
        answer = json.loads(bytes(got))
    else:
        entries: dict[int, Any] = {0: mine}
        status = MPI.Status()

        def came() -> bool:
            while comm.Iprobe(source=MPI.ANY_SOURCE, tag=_TAG, status=status):
                got = bytearray(status.Get_count(MPI.BYTE))
                comm.Recv([got, MPI.BYTE], status.Get_source(), _TAG)
                entries[status.Get_source()] = json.loads(bytes(got))
            return len(entries) == size

        _wait_until(came, time.monotonic() + seconds)
        missing = [i for i in range(size) if i not in entries]
        answer = {"missing": missing, "entries": [entries.get(i) for i in range(size)]}
        text = json.dumps(answer).encode()
        for request in [comm.Isend([text, MPI.BYTE], i, _TAG) for i in entries if i]:
            request.Wait()
        answer = json.loads(text)  # as the others see it
    if answer["missing"]:
        _raise_missing(answer["missing"], seconds)
    return answer["entries"]


def _wait_until(ready: Callable[[], bool], end: float) -> None:
    while not ready() and time.monotonic() < end:
        os.sched_yield()
        time.sleep(1e-4)


def _raise_missing(ranks: list[int], seconds: float) -> None:
    mark_lost()
    raise RankFailedError(
        f"init_process_group: rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} did not come within {seconds:g} s; "
        "does every process call init_process_group?",
        tuple(ranks),
    )


def _check_same(table: list[dict[str, Any]]) -> None:
    for what, how in (("size", "a world_size"), ("script", "a program"), ("versions", "versions of tritensor and Python")):
        first = table[0][what]
        others = [e["rank"] for e in table if e[what] != first]
        if others:
            other = next(e for e in table if e[what] != first)
            raise DistError(
                f"init_process_group: rank {other['rank']} has {how} of its own, {_format_value(other[what])}, and rank "
                f"{table[0]['rank']} {_format_value(first)}; "
                "start all processes from one installation with one script"
            )


def _format_value(value: Any) -> str:
    return " ".join(str(v) for v in value if v) if isinstance(value, list) else str(value)
