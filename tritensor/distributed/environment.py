"""Rank and world size of this process, as torchrun, mpiexec and Slurm set them in the environment, or as an address gives them."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tritensor.ground.errors import ArgumentError

# (rank, size) of each way to start processes, the nearest to the user first: torchrun and this launcher, MPICH and Intel MPI, Open MPI, Slurm.
_NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_MEETING = "tritensor/meeting"  # the key of a store under which rank 0 says where ranks meet
_LOCAL = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")


def read_rank_and_size(method: str, world_size: int, rank: int, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(world size, rank), each as given, or where it is -1 as `method` or the environment has it. Raises ValueError where nobody says."""
    parts = urlsplit(method)
    told = {k: v[0] for k, v in parse_qs(parts.query).items()}
    said: dict[str, str] = {}
    if parts.scheme == "env":
        # Only a complete pair counts: a stray RANK in a Slurm job says nothing of the size.
        names = next(((r, s) for r, s in _NAMES if r in environment and s in environment), ("RANK", "WORLD_SIZE"))
        for variable, given in zip(names, (rank, world_size), strict=True):
            if given == -1 and variable not in environment:
                raise ArgumentError(
                    f"init_process_group: 'env://' expects the environment variable {variable}, which is not set; start the program with "
                    "python -m tritensor.launch -n 2 train.py (or mpiexec, srun, torchrun), or give rank=0, world_size=1 for one process"
                )
        said = {k: f"the environment variable {v}" for k, v in zip(("rank", "world_size"), names, strict=True) if k not in told}
        told = {"rank": environment.get(names[0], ""), "world_size": environment.get(names[1], ""), **told}
    size, number = world_size if world_size != -1 else told.get("world_size"), rank if rank != -1 else told.get("rank")
    for what, value in (("world_size", size), ("rank", number)):
        if value is None:
            raise ArgumentError(f"init_process_group: {method!r} does not say the {what}; give {what}=, or put ?{what}= behind it")
    who = "init_process_group"
    assert size is not None
    assert number is not None
    return _parse_integer(who, said.get("world_size", "world_size"), size), _parse_integer(who, said.get("rank", "rank"), number)


def _parse_integer(who: str, what: str, value: int | str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ArgumentError(f"{who}: {what} is {value!r}; give a whole number") from error


def find_meeting_point(method: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The meeting point that all ranks know: the address of rank 0's machine and a port, or a file's path. None where neither is said."""
    parts = urlsplit(method)
    if parts.scheme == "file":
        return os.path.abspath(parts.path)
    if parts.scheme == "tcp":
        return parts.netloc
    found = environment.get("MASTER_ADDR"), environment.get("MASTER_PORT")
    return None if None in found else f"{found[0]}:{found[1]}"


def meet_in_store(store: Any, rank: int) -> str:
    """The meeting point that rank 0 writes into a store which all ranks open. Raises DistStoreError where rank 0 does not come."""
    if rank == 0:
        # A name of this world alone: the next one's store, of the same path, may not lead back to this one's folder.
        store.set(_MEETING, f"{socket.gethostname()}:{secrets.token_hex(8)}")
    return store.get(_MEETING).decode()


def read_local_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of this process on its machine, where its starter says it."""
    found = next((name for name in _LOCAL if name in environment), None)
    return None if found is None else _parse_integer("local rank", f"the environment variable {found}", environment[found])
