"""The process group: who takes part. One process yet; a world of more is refused by name before anything waits for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tritensor.errors import ArgumentError

BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "fake")


class ProcessGroup:
    """Processes that communicate: `ranks` are their numbers in the whole world. Here the one process that there is."""

    def __init__(self, ranks: Sequence[int], backend: str, name: str) -> None:
        self.ranks, self.backend, self.group_name = tuple(ranks), backend, name

    def rank(self) -> int:
        """This process' number in the group, -1 where it is no member."""
        return 0 if self.ranks else -1

    def size(self) -> int:
        """How many processes take part."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} of rank 0, backend {self.backend}>"


class GroupMember:
    """WORLD is the group of all processes, None until init_process_group; NON_GROUP_MEMBER what new_group gives a process outside of it."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class _World(type):
    """Gives a class the attribute WORLD, looked up anew each time."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return GroupMember.WORLD


class group(metaclass=_World):
    """`group.WORLD`: the group of all processes, None until init_process_group."""


_made = 0


def is_available() -> bool:
    """True: a world of one process can be initialised."""
    return True


def is_initialized() -> bool:
    """Whether init_process_group was called, and destroy_process_group not since."""
    return GroupMember.WORLD is not None


def is_backend_available(backend: str) -> bool:
    """False for every backend: none is needed for the one process that a group has."""
    return False


def is_gloo_available() -> bool:
    """False: no gloo is here."""
    return False


def is_mpi_available() -> bool:
    """False: no MPI is here."""
    return False


def is_nccl_available() -> bool:
    """False: no NCCL is here."""
    return False


def is_ucc_available() -> bool:
    """False: no UCC is here."""
    return False


def is_xccl_available() -> bool:
    """False: no XCCL is here."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from LOCAL_RANK. Raises RuntimeError where neither it nor fallback_rank is there."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; start with torchrun, or give fallback_rank")


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
    store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the group of all processes. World size and rank are given, or stand in init_method (`tcp://host:port?rank=0&world_size=1`) or,
    with "env://", which is the default, in the environment (WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT).

    Raises:
        ValueError: a group is there already; a backend, init_method, rank or variable that makes no sense or is missing.
        NotImplementedError: a world of more than one process.
    """
    if is_initialized():
        raise ArgumentError("init_process_group: trying to initialize the default process group twice; call destroy_process_group() first")
    if store is not None and init_method is not None:
        raise ArgumentError("init_process_group: store and init_method are two ways to say the same; give one")
    _check_backend("init_process_group", backend)
    if init_method is not None and urlsplit(init_method).scheme not in ("env", "tcp", "file"):
        raise ArgumentError(f"init_process_group: init_method {init_method!r}; give 'env://', 'tcp://host:port' or 'file:///path'")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"init_process_group: timeout is {timeout!r}; give a datetime.timedelta")
    if world_size == -1 or rank == -1:
        size, number = (world_size, rank) if store is not None else _from(init_method or "env://", world_size, rank)
    else:
        size, number = world_size, rank
    if size < 1:
        raise ArgumentError(f"init_process_group: world_size {size}; give 1, the number of processes")
    if size > 1:
        raise NotImplementedError(
            f"init_process_group: world_size {size}: several processes cannot communicate in tritensor yet; run one, with world_size=1"
        )
    if number != 0:
        raise ArgumentError(f"init_process_group: rank {number} in a world of 1 process; its rank is 0")
    GroupMember.WORLD = ProcessGroup((0,), backend or "undefined", group_name or "default_pg")


def _check_backend(name: str, backend: str | None) -> None:
    """`gloo`, or `cpu:gloo,cuda:nccl`: a word for each device."""
    if backend is None:
        return
    if not isinstance(backend, str):
        raise ArgumentError(f"{name}: backend is {backend!r}; give a string: {', '.join(map(repr, BACKENDS))}")
    for part in backend.lower().split(","):
        if part.rpartition(":")[2] not in BACKENDS:
            raise ArgumentError(f"{name}: backend {backend!r} is not known; give one of {', '.join(map(repr, BACKENDS))}")


def _from(method: str, world_size: int, rank: int) -> tuple[int, int]:
    """(world size, rank) as init_method says them, where they are not given."""
    parts = urlsplit(method)
    told = {k: v[0] for k, v in parse_qs(parts.query).items()}
    if parts.scheme == "env":
        for variable, given in (("RANK", rank), ("WORLD_SIZE", world_size), ("MASTER_ADDR", -1), ("MASTER_PORT", -1)):
            if given == -1 and variable not in os.environ:
                raise ArgumentError(
                    f"init_process_group: 'env://' expects the environment variable {variable}, which is not set; start with torchrun, "
                    "set RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=29500, or give rank=0, world_size=1 and another init_method"
                )
        told = {"rank": os.environ.get("RANK", ""), "world_size": os.environ.get("WORLD_SIZE", ""), **told}
    size, number = world_size if world_size != -1 else told.get("world_size"), rank if rank != -1 else told.get("rank")
    for what, value in (("world_size", size), ("rank", number)):
        if value is None:
            raise ArgumentError(f"init_process_group: {method!r} does not say the {what}; give {what}=, or put ?{what}= behind it")
        if not isinstance(value, int) and not value.lstrip("-").isdigit():
            raise ArgumentError(f"init_process_group: {what} is {value!r}, no integer")
    assert size is not None
    assert number is not None
    return int(size), int(number)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group; all of them without one. Raises ValueError where there is none."""
    if GroupMember.WORLD is None:
        raise ArgumentError("destroy_process_group: no process group has been initialised; there is nothing to destroy")
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = None


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some of the processes, all without `ranks`; GroupMember.NON_GROUP_MEMBER where this one is not among them.

    Raises ValueError without a world, and for ranks that the world has not or that stand there twice.
    """
    global _made
    world = joined("new_group")
    _check_backend("new_group", backend)
    given = [0] if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(set(given)) != len(given):
        raise ArgumentError(f"new_group: ranks {list(ranks or ())} holds a rank twice; give each once")
    if any(not 0 <= r < world.size() for r in given):
        raise ArgumentError(f"new_group: ranks {given}; this world has {world.size()} process, rank 0")
    _made += 1
    return ProcessGroup(given, backend or world.backend, f"group {_made}") if given else GroupMember.NON_GROUP_MEMBER


def joined(name: str, asked: Any = None) -> ProcessGroup:
    """The group that a call named `name` works in. Raises ValueError where there is none."""
    if asked is not None and asked is not GroupMember.WORLD:
        if asked == GroupMember.NON_GROUP_MEMBER:
            raise ArgumentError(f"{name}: this process is no member of the group; ask get_rank(group) first")
        if not isinstance(asked, ProcessGroup):
            raise TypeError(f"{name}: group is {type(asked).__name__}; give what new_group returned, or None for all processes")
    if GroupMember.WORLD is None:
        raise ArgumentError(f"{name}: no process group has been initialised (default process group); call init_process_group first")
    return asked if isinstance(asked, ProcessGroup) else GroupMember.WORLD


def get_rank(group: Any = None) -> int:
    """This process' number in the group, -1 outside of it. Raises ValueError before init_process_group."""
    return -1 if asks_outside(group) else joined("get_rank", group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes the group has, -1 outside of it. Raises ValueError before init_process_group."""
    return -1 if asks_outside(group) else joined("get_world_size", group).size()


def asks_outside(group: Any) -> bool:
    """Whether a group is the one that this process is no member of: communication in it passes over this process."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def get_backend(group: Any = None) -> str:
    """The backend's word, as it was given. Raises ValueError before init_process_group."""
    return joined("get_backend", group).backend


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers in the whole world of a group's processes."""
    return list(joined("get_process_group_ranks", group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the whole world of the process that is group_rank in the group. Raises ValueError where there is none."""
    ranks = joined("get_global_rank", group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"get_global_rank: group rank {group_rank} is not part of {group!r}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in the group of the process that is global_rank in the world. Raises ValueError where it is no member."""
    ranks = joined("get_group_rank", group).ranks
    if global_rank not in ranks:
        raise ArgumentError(f"get_group_rank: global rank {global_rank} is not part of {group!r}")
    return ranks.index(global_rank)


def get_default_backend_for_device(device: Any) -> str:
    """ "nccl" for a GPU, "gloo" for the CPU."""
    return "nccl" if str(device).startswith("cuda") else "gloo"


def get_pg_count() -> int:
    """How many groups were made."""
    return (GroupMember.WORLD is not None) + _made
