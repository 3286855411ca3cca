"""The process group: its members, and the backend that carries each device's tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tritensor.distributed.backends.agreement import check_counts, check_same_call
from tritensor.distributed.backends.interface import Backend
from tritensor.distributed.calls import Call
from tritensor.ground.call_site import user_line
from tritensor.ground.device import cpu
from tritensor.ground.errors import ArgumentError, CaptureError, DeviceError, DistError
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.lazy_array import compute_now, run_before_write
from tritensor.ops.strided_array import MetaArray, no_values
from tritensor.tensor.core import Tensor

CHECKED = 64  # of a group's calls, the first so many are compared between the ranks in any case: most mistakes show in the first step


class ProcessGroup:
    """Processes that communicate: `ranks` are their numbers in the whole world, `backend` the word that was given.

    Attributes for library code: `backends` (one for "cpu", one for "cuda", as there are, and "control" where MPI carries no tensors and
    watches the ranks of an NCCL group), `detail` (every call is compared between ranks).
    """

    def __init__(
        self, ranks: Sequence[int], backend: str, name: str, backends: dict[str, Backend], rank: int = 0, seconds: float = 1800.0,
        detail: bool = False,
    ) -> None:  # fmt: skip
        self.ranks, self.backend, self.group_name = tuple(ranks), backend, name
        self.backends, self.seconds, self.detail = backends, seconds, detail
        self._rank, self._calls, self._sent, self._pid = rank, 0, 0, os.getpid()
        self.is_closed = False  # by destroy_process_group
        self.uses: list[Future[Any]] = []  # what communicates in the group from another thread: an end of the group waits for it

    def rank(self) -> int:
        """This process' number in the group, -1 where it is no member."""
        return self._rank if self.ranks else -1

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    def __repr__(self) -> str:
        return (
            f"<ProcessGroup {self.group_name} of rank{'s' * (self.size() > 1)} {', '.join(map(str, self.ranks))}, backend {self.backend}>"
        )

    def forked(self) -> bool:
        """Whether this process was forked after the group was made, which no library of communication survives."""
        return self._pid != os.getpid()

    def _check(self, name: str) -> None:
        # The backends' communicators are freed: a call would crash inside of the library.
        if self.is_closed:
            raise DistError(f"{name}: {self!r} was destroyed by destroy_process_group; make it anew with new_group, or call this before")
        # The child has the parent's sockets and none of its threads: it would wait, or disturb the parent.
        if self.forked():
            raise DistError(
                f"{name}: this process was forked after init_process_group, and a library of communication does not survive that; fork before, or "
                "start processes by spawn"
            )
        if here.capture is not None:
            raise CaptureError(
                f"{name} ({user_line()}): communicates, which no replay would do again; a CUDA graph is being captured. Call it outside of the capture"
            )

    def get_control_device(self, device: Any) -> Any:
        """The device for small control messages about work on `device`: the CPU, where the group reaches it."""
        # On the CPU the answer is read without stopping the GPU's stream.
        return cpu if "cpu" in self.backends else device

    def begin(self, name: str, what: str = "") -> Call:
        """A collective call that starts now; `what` says all that must be alike on all ranks."""
        self._check(name)
        self._calls += 1
        call = Call(name, self._calls, self.group_name, what)
        # Comparing costs a message of its own: after the first calls only in debug level DETAIL.
        self._checker.raise_if_failed(name)
        if self._compares:
            check_same_call(self._checker, call, self.ranks)
        return call

    def match(self, call: Call, give: Sequence[int], take: Sequence[int]) -> None:
        """Compare, where calls are compared, how many elements this process gives to and takes from each with what the others do."""
        if self._compares:
            check_counts(self._checker, call, self.ranks, give, take)

    @property
    def _compares(self) -> bool:
        return len(self.ranks) > 1 and (self._calls <= CHECKED or self.detail)

    @property
    def _checker(self) -> Backend:
        # By MPI where it is there: the comparison is of host values, and must not queue behind the GPU's work.
        return self.backends.get("cpu") or self.backends.get("control") or self.backends["cuda"]

    def begin_pairwise(self, name: str, what: str = "") -> Call:
        """A call between two processes, which the others do not make; it has a number of its own row."""
        self._check(name)
        self._sent += 1
        self._checker.raise_if_failed(name)
        return Call(name, self._sent, self.group_name, what)

    def backend_of(self, name: str, *tensors: Tensor) -> Backend:
        """The backend that reaches these tensors. Raises DeviceError where there is none, or they are on several devices."""
        kinds = {_get_device_type(name, t) for t in tensors}
        # Each backend reaches one kind of memory, and a call is one backend's.
        if len(kinds) > 1:
            raise DeviceError(f"{name}: tensors on {' and '.join(sorted({str(t.device) for t in tensors}))}; move all to one device")
        kind = kinds.pop()
        # "control" carries no tensors, so the message must not offer it.
        if kind not in self.backends:
            only = next(k for k in self.backends if k != "control")
            raise DeviceError(
                f"{name}: the tensor is on {tensors[0].device}, and the group's backend {self.backend!r} is for {only}; init_process_group with "
                f"'cpu:mpi,cuda:nccl', or move the tensor with .{'cuda' if only == 'cuda' else 'cpu'}()"
            )
        found = self.backends[kind]
        for t in tensors:
            found.check_device(name, t._array)
        return found


def _get_device_type(name: str, t: Tensor) -> str:
    # vmap's and grad's tensors are wrappers around values that differ from what a message would send.
    compute_now(t)
    run_before_write(t._array)  # a message may be received in it
    if type(t._array) is WrappedArray:
        raise ArgumentError(
            f"{name}: called inside of a function transform (vmap, grad, jvp), where there is no memory to send; call it outside"
        )
    if type(t._array) is MetaArray:
        raise no_values(name, "a message has values")
    return "cuda" if t.is_cuda else "cpu"


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


def require_group(name: str, asked: Any = None) -> ProcessGroup:
    """The group that a call named `name` works in. Raises ValueError where there is none."""
    # None and group.WORLD mean all processes; anything else must be a group that was made.
    if asked is not None and asked is not GroupMember.WORLD:
        if asked == GroupMember.NON_GROUP_MEMBER:
            raise ArgumentError(f"{name}: this process is no member of the group; ask get_rank(group) first")
        if not isinstance(asked, ProcessGroup):
            raise TypeError(f"{name}: group is {type(asked).__name__}; give what new_group returned, or None for all processes")
    if GroupMember.WORLD is None:
        raise ArgumentError(f"{name}: no process group has been initialised (default process group); call init_process_group first")
    return asked if isinstance(asked, ProcessGroup) else GroupMember.WORLD


def is_outside(group: Any) -> bool:
    """Whether a group is the one that this process is no member of: communication in it passes over this process."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def is_initialized() -> bool:
    """Whether init_process_group was called, and destroy_process_group not since."""
    return GroupMember.WORLD is not None


def get_rank(group: Any = None) -> int:
    """This process' number in the group, -1 outside of it. Raises ValueError before init_process_group."""
    return -1 if is_outside(group) else require_group("get_rank", group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes of the group, -1 outside of it. Raises ValueError before init_process_group."""
    return -1 if is_outside(group) else require_group("get_world_size", group).size()


def get_backend(group: Any = None) -> str:
    """The backend's word, as it was given. Raises ValueError before init_process_group."""
    return require_group("get_backend", group).backend


def get_backend_config(group: Any = None) -> str:
    """A word for each device: "cpu:mpi,cuda:nccl"."""
    found = require_group("get_backend_config", group)
    return ",".join(f"{device}:{b.name}" for device, b in sorted(found.backends.items()) if device != "control")


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers in the whole world of a group's processes."""
    return list(require_group("get_process_group_ranks", group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the whole world of the process that is group_rank in the group. Raises ValueError where there is none."""
    ranks = require_group("get_global_rank", group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"get_global_rank: group rank {group_rank} is not part of {group!r}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in the group of the process that is global_rank in the world. Raises ValueError where it is no member."""
    ranks = require_group("get_group_rank", group).ranks
    if global_rank not in ranks:
        raise ArgumentError(f"get_group_rank: global rank {global_rank} is not part of {group!r}")
    return ranks.index(global_rank)
