"""Creation and destruction of process groups: init_process_group, new_group, subgroups, destroy_process_group, and the available backends."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import wait
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tritensor.cuda.availability import gpus
from tritensor.cuda.runtime.active import emulated
from tritensor.distributed.backends.interface import Backend
from tritensor.distributed.backends.one_process import OneProcess
from tritensor.distributed.calls import Call
from tritensor.distributed.debug_level import DebugLevel, get_debug_level
from tritensor.distributed.environment import find_meeting_point, meet_in_store, read_local_rank, read_rank_and_size
from tritensor.distributed.process_group import (
    GroupMember,
    ProcessGroup,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
    is_outside,
    require_group,
)
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError

BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "fake")
default_pg_timeout = timedelta(minutes=30)  # how long a group waits for its processes where nothing is said
_made = 0
_store: Any = None  # where the processes met, kept as long as the world: a FileStore's file goes with its last user
_said_gloo = False


def is_available() -> bool:
    """True: a world can be initialised."""
    return True


def is_backend_available(backend: str) -> bool:
    """Whether what a backend needs is installed: "mpi" and "gloo", which means mpi here, need mpi4py; "nccl" needs nccl4py."""
    return {"mpi": is_mpi_available, "gloo": is_gloo_available, "nccl": is_nccl_available}.get(backend.lower(), lambda: False)()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """Whether mpi4py is installed: "gloo" means mpi here."""
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Whether nccl4py is installed."""
    return importlib.util.find_spec("nccl") is not None


def is_ucc_available() -> bool:
    """False: no UCC is here."""
    return False


def is_xccl_available() -> bool:
    """False: no XCCL is here."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun or tritensor.launch started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from LOCAL_RANK or what mpiexec and Slurm set. Raises RuntimeError where nobody says."""
    found = read_local_rank()
    if found is not None:
        return found
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; start with tritensor.launch, or give fallback_rank")


def get_default_backend_for_device(device: Any) -> str:
    """ "nccl" for a GPU, "gloo" for the CPU."""
    return "nccl" if str(device).startswith("cuda") else "gloo"


def get_pg_count() -> int:
    """The number of groups that were made."""
    return (GroupMember.WORLD is not None) + _made


def parse_backends(name: str, backend: str | None) -> dict[str, str]:
    """{"cpu": "mpi", "cuda": "nccl"}: a backend for each device, of `gloo`, or `cpu:gloo,cuda:nccl`; of None what is here.

    Raises ValueError for words that are no backend, and NotImplementedError for those that are PyTorch's and not here.
    """
    if backend is None:
        return {"cpu": "mpi"} | ({"cuda": "nccl"} if _is_nccl_usable() else {})
    if not isinstance(backend, str):
        raise ArgumentError(f"{name}: backend is {backend!r}; give a string: {', '.join(map(repr, BACKENDS))}")
    found = {}
    for part in backend.lower().split(","):
        device, _, word = part.strip().rpartition(":")
        if word not in BACKENDS:
            raise ArgumentError(f"{name}: backend {backend!r} is not known; give one of {', '.join(map(repr, BACKENDS))}")
        # Scripts say gloo for "the CPU"; MPI carries the same calls.
        if word == "gloo":
            word = "mpi"
        found[device or ("cuda" if word == "nccl" else "cpu")] = word
    return found


def _is_nccl_usable() -> bool:
    """Whether there are GPUs, no emulated ones, and an NCCL to reach them."""
    # NCCL needs real GPUs; the emulated device lives in the host's memory.
    if not is_nccl_available() or not gpus() or emulated():
        return False
    from tritensor.distributed.backends.nccl import works

    return works()


def _check_backends(words: dict[str, str]) -> None:
    """Refuse, in a world of several processes, what is no backend of ours or is for another device."""
    for device, word in words.items():
        if word not in ("mpi", "nccl"):
            raise NotImplementedError(f"init_process_group: backend {word!r} is not in tritensor; give 'mpi' for the CPU, 'nccl' for GPUs")
        # PyTorch's gloo takes CUDA tensors by copies over the host; here the program says where copies are.
        if device != ("cuda" if word == "nccl" else "cpu"):
            raise ArgumentError(f"init_process_group: backend {word!r} for {device}; MPI is for cpu and NCCL for cuda: 'cpu:mpi,cuda:nccl'")


def _warn_gloo(backend: str | None) -> None:
    global _said_gloo
    if backend is not None and "gloo" in backend.lower() and not _said_gloo:
        _said_gloo = True
        warnings.warn("init_process_group: backend 'gloo' means 'mpi' in tritensor: the same calls, carried by MPI", stacklevel=3)


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
    store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the group of all processes, which all of them call.

    World size and rank are given, or stand in init_method (`tcp://host:port?rank=0&world_size=1`) or, with "env://", which is the default,
    in the environment: RANK and WORLD_SIZE (tritensor.launch, torchrun), or what mpiexec or Slurm set. Processes that these have started find
    one another through MPI; others of one machine (multiprocessing.spawn, torchrun) meet at the address, MASTER_ADDR and MASTER_PORT, which
    takes MPICH's mpiexec; or in a `store` that all of them open, and in which rank 0 says where. A world of one process needs no library.

    Args:
        backend: "mpi" for tensors on the CPU, "nccl" for those on GPUs, "cpu:mpi,cuda:nccl" for both; "gloo" means "mpi". Where nothing is
            given: "mpi", and "nccl" beside it where there are GPUs and an NCCL.
        timeout: how long a call waits for the other processes before it raises RankFailedError; 30 minutes where nothing is given.
        device_id: the GPU of this process, for NCCL; the current one where nothing is given.

    Raises:
        ValueError: a group is there already; a backend, init_method, rank or variable that makes no sense or is missing.
        ModuleNotFoundError: mpi4py or nccl4py is missing; the message says what to install.
        DistError: not started as that many processes, or the processes differ in program or versions.
        RankFailedError: a process does not come within the timeout.
    """
    global _store
    # A second world would leave groups of the first whose ranks mean other processes.
    if is_initialized():
        raise ArgumentError("init_process_group: trying to initialize the default process group twice; call destroy_process_group() first")
    if store is not None and init_method is not None:
        raise ArgumentError("init_process_group: store and init_method are two ways to say the same; give one")
    words = parse_backends("init_process_group", backend)
    if init_method is not None and urlsplit(init_method).scheme not in ("env", "tcp", "file"):
        raise ArgumentError(f"init_process_group: init_method {init_method!r}; give 'env://', 'tcp://host:port' or 'file:///path'")
    seconds = _to_seconds("init_process_group", timeout)
    if world_size == -1 or rank == -1:
        size, number = (world_size, rank) if store is not None else read_rank_and_size(init_method or "env://", world_size, rank)
    else:
        size, number = world_size, rank
    if size < 1:
        raise ArgumentError(f"init_process_group: world_size {size}; give the number of processes, 1 or more")
    if not 0 <= number < size:
        raise ArgumentError(f"init_process_group: rank {number} in a world of {size} process{'es' * (size > 1)}; give 0 to {size - 1}")
    backends: dict[str, Backend] = {device: OneProcess() for device in ("cpu", "cuda")}
    # One process needs no library, so that a script runs on a machine without MPI.
    if size > 1:
        _check_backends(words)
        _warn_gloo(backend)
        meeting = find_meeting_point(init_method or "env://") if store is None else meet_in_store(store, number)
        backends = _make_backends(words, number, size, seconds, device_id, meeting)
    detail = get_debug_level() is DebugLevel.DETAIL
    GroupMember.WORLD = ProcessGroup(range(size), backend or "undefined", group_name or "default_pg", backends, number, seconds, detail)
    _store = store


def _to_seconds(name: str, timeout: timedelta | None) -> float:
    if timeout is None:
        timeout = default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"{name}: timeout is {timeout!r}; give a datetime.timedelta")
    if timeout.total_seconds() <= 0:
        raise ArgumentError(f"{name}: timeout {timeout} is over before anything begins; give more than 0 seconds")
    return timeout.total_seconds()


def _make_backends(words: dict[str, str], rank: int, size: int, seconds: float, device_id: Any, meeting: str | None) -> dict[str, Backend]:
    """A backend for each device. Where there is an MPI it also brings an NCCL group together, and watches it."""
    found: dict[str, Backend] = {}
    if "cpu" in words or is_mpi_available():
        from tritensor.distributed.backends.mpi import join_world

        version = getattr(sys.modules.get("tritensor"), "__version__", "")
        found["cpu" if "cpu" in words else "control"] = join_world(version, rank, size, seconds, meeting)
    if "cuda" in words:
        found["cuda"] = _make_nccl(found.get("cpu") or found.get("control"), rank, size, seconds, device_id)
    return found


def _make_nccl(world: Backend | None, rank: int, size: int, seconds: float, device_id: Any) -> Backend:
    """NCCL's processes find one another by a number that MPI brings to all, or without MPI at MASTER_ADDR and MASTER_PORT."""
    from tritensor.distributed.backends.nccl import NcclBackend, unique_id

    # Without MPI there is nobody to bring the unique id round: NCCL itself then meets at an address.
    if world is None:
        if "NCCL_COMM_ID" not in os.environ:
            missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
            if missing:
                raise ArgumentError(
                    f"init_process_group: without MPI, NCCL's processes meet at MASTER_ADDR and MASTER_PORT, and {' and '.join(missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} not set; set them on all ranks, or pip install 'tritensor[mpi]'"
                )
            os.environ["NCCL_COMM_ID"] = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        number = unique_id()
    else:
        raw = np.frombuffer(unique_id(), np.uint8).copy() if rank == 0 else np.zeros(128, np.uint8)
        world.broadcast(Call("init_process_group", 0, "default_pg"), 0, raw).wait()
        number = raw.tobytes()
    index = None if device_id is None else as_device(device_id).index
    return NcclBackend(rank, size, number, index, seconds)


def destroy_process_group(group: Any = None) -> None:
    """Forget a group; all of them without one. Waits for an async_save that goes on in it. Raises ValueError where there is none, or no such one."""
    global _made, _store
    if GroupMember.WORLD is None:
        raise ArgumentError("destroy_process_group: no process group has been initialised; there is nothing to destroy")
    # Groups were split off the world's backends, so they end with it.
    if group is None or group is GroupMember.WORLD:
        for made in (*_groups, GroupMember.WORLD):
            _close(made)
        _groups.clear()
        GroupMember.WORLD, _store, _made = None, None, 0
    elif group in _groups:
        _groups.remove(group)
        _close(group)
    elif not is_outside(group):
        raise ArgumentError(
            f"destroy_process_group: Invalid process group: {group!r} is none, or was destroyed before; destroy each group once"
        )


_groups: list[ProcessGroup] = []  # those that new_group made, of which this process is a member


def _close(group: ProcessGroup) -> None:
    backends = () if group.forked() else group.backends.values()
    # A thread that still communicates in the group (async_save) would find its communicator freed.
    if backends:
        wait(group.uses)  # their errors are told by their own result()
    group.is_closed = True
    for backend in backends:
        backend.close()


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some of the processes, all without `ranks`; GroupMember.NON_GROUP_MEMBER where this one is not among them.

    All processes call it, members or not, in the same order.

    Raises ValueError without a world, and for ranks that the world has not or that stand there twice; NotImplementedError for
    use_local_synchronization=True, by which only members would call it.
    """
    global _made
    world = require_group("new_group")
    parse_backends("new_group", backend)
    given = list(world.ranks) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(set(given)) != len(given):
        raise ArgumentError(f"new_group: ranks {list(ranks or ())} holds a rank twice; give each once")
    if any(not 0 <= r < world.size() for r in given):
        raise ArgumentError(
            f"new_group: ranks {given}; this world has {world.size()} process{'es' * (world.size() > 1)}, rank 0"
            + f" to {world.size() - 1}" * (world.size() > 1)
        )
    seconds = world.seconds if timeout is None else _to_seconds("new_group", timeout)
    # MPI_Comm_split and ncclCommSplit are calls of all processes.
    if use_local_synchronization and len(given) < world.size():
        raise NotImplementedError(
            f"new_group: use_local_synchronization=True, by which ranks {given} alone would call it, is not in tritensor; let all "
            f"{world.size()} processes call it, and leave that out"
        )
    _made += 1
    name = group_desc or f"group {_made}"
    call = world.begin("new_group", f"ranks {given}")
    backends = {device: b.split(call, given) for device, b in world.backends.items()}
    # It has taken part in the split all the same, which the members wait for.
    if world.rank() not in given:
        return GroupMember.NON_GROUP_MEMBER
    kept = {device: b for device, b in backends.items() if b is not None}
    for b in kept.values():
        b.set_timeout(seconds)
    made = ProcessGroup(given, backend or world.backend, name, kept, given.index(world.rank()), seconds, world.detail)
    _groups.append(made)
    return made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """(this process' group, all groups) of group_size neighbours each; of as many as there are GPUs, where no size is given.

    Raises ValueError for a size that does not divide the world.
    """
    if group_size is None:
        if not gpus():
            raise ArgumentError("new_subgroups: group_size is the number of GPUs where it is left out, and there is none; give a number")
        group_size = gpus()
    size = get_world_size(group)
    if group_size <= 0 or group_size > size or size % group_size:
        raise ArgumentError(f"new_subgroups: group_size {group_size} for {size} processes; give a positive number that divides them")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """(this process' group or None, all groups), a group for each list of ranks. Raises ValueError for a rank that stands in two of them."""
    if not ranks_per_subgroup_list:
        raise ArgumentError(
            "new_subgroups_by_enumeration: the arg 'ranks_per_subgroup_list' cannot be empty; give a list of lists of ranks"
        )
    listed = [rank for part in ranks_per_subgroup_list for rank in part]
    twice = sorted({rank for rank in listed if listed.count(rank) > 1})
    # A process in two subgroups would have no one group to be returned.
    if twice:
        raise ArgumentError(f"new_subgroups_by_enumeration: ranks {twice} stand in two subgroups; each process belongs to one")
    # All processes make all groups, in one order: new_group is a call of the whole world.
    made = [new_group(list(part), timeout, backend, pg_options, group_desc=group_desc) for part in ranks_per_subgroup_list]
    mine = next((g for g, part in zip(made, ranks_per_subgroup_list, strict=True) if get_rank() in part), None)
    return mine, made
