"""MpiBackend: every call is begun without blocking, straight on the arrays' memory, and waited for with an eye on the other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.distributed.backends.interface import Backend, Pending
from tritensor.distributed.backends.mpi.library import is_lost, mpi
from tritensor.distributed.backends.mpi.peers import Peers, Process
from tritensor.distributed.backends.mpi.pending import MpiPending, Receive, driver, to_backend_error
from tritensor.distributed.backends.mpi.reductions import divide_sum, get_reduction
from tritensor.distributed.backends.one_process import copy_array
from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import cpu
from tritensor.ground.errors import ArgumentError, DeviceError
from tritensor.ops.array import Array


class MpiBackend(Backend):
    """The processes of one communicator, which belongs to this backend. See the interface."""

    name, device = "mpi", cpu

    def __init__(self, comm: Any, members: Sequence[Process], seconds: float) -> None:
        self.MPI = mpi("init_process_group")
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.seconds = seconds
        self.peers = Peers(self.MPI, comm.Dup(), members, seconds)

    def check_device(self, call: str, array: Array) -> None:
        if type(array) is not np.ndarray:
            on = getattr(array, "device", type(array).__name__)
            raise DeviceError(
                f"{call}: the tensor is on {on}, and MPI reaches the memory of the CPU; init_process_group('nccl') or 'cpu:mpi,cuda:nccl' for GPUs, "
                "or move the tensor with .cpu()"
            )

    def begin(
        self, call: Call, post: Callable[..., Any], *args: Any, keep: tuple[Any, ...], finish: Callable[[], None] | None = None
    ) -> MpiPending:
        """The call that `post(*args)`, a method of the communicator, begins; `keep` is the memory that belongs to it until it is done."""
        return MpiPending(self._post(call, post, *args), call, self.peers, keep, finish)

    def _post(self, call: Call, post: Callable[..., Any], *args: Any) -> Any:
        try:
            return post(*args)
        except self.MPI.Exception as error:
            self.peers.fail(f"{call}: {error}")
            raise to_backend_error(call, error) from error

    def all_reduce(self, call: Call, op: ReduceOp, out: Array) -> Pending:
        view, kind, how = _view_for_mpi(out, op)
        return self.begin(
            call, self.comm.Iallreduce, self.MPI.IN_PLACE, [view, kind], how, keep=(out,), finish=self._get_mean_step(op, out)
        )

    def reduce(self, call: Call, op: ReduceOp, root: int, out: Array) -> Pending:
        view, kind, how = _view_for_mpi(out, op)
        # The root alone receives; MPI_IN_PLACE is refused elsewhere.
        if self.rank != root:
            return self.begin(call, self.comm.Ireduce, [view, kind], None, how, root, keep=(out,))
        return self.begin(
            call, self.comm.Ireduce, self.MPI.IN_PLACE, [view, kind], how, root, keep=(out,), finish=self._get_mean_step(op, out)
        )

    def _get_mean_step(self, op: ReduceOp, out: Array) -> Callable[[], None] | None:
        return (lambda: divide_sum(out, self.size)) if op is ReduceOp.AVG else None  # type: ignore[arg-type]

    def broadcast(self, call: Call, root: int, out: Array) -> Pending:
        return self.begin(call, self.comm.Ibcast, self._bytes(out), root, keep=(out,))

    def all_gather(self, call: Call, part: Array, out: Array) -> Pending:
        part = _copy_if_overlapping(part, out)
        return self.begin(call, self.comm.Iallgather, self._bytes(part), self._bytes(out), keep=(part, out))

    def gather(self, call: Call, root: int, part: Array, out: Array | None) -> Pending:
        part = _copy_if_overlapping(part, out)
        return self.begin(call, self.comm.Igather, self._bytes(part), None if out is None else self._bytes(out), root, keep=(part, out))

    def scatter(self, call: Call, root: int, whole: Array | None, out: Array) -> Pending:
        given = None if whole is None else _copy_if_overlapping(whole, out)
        return self.begin(
            call, self.comm.Iscatter, None if given is None else self._bytes(given), self._bytes(out), root, keep=(given, out)
        )

    def reduce_scatter(self, call: Call, op: ReduceOp, whole: Array, out: Array) -> Pending:
        given, kind, how = _view_for_mpi(_copy_if_overlapping(whole, out), op)
        into = [_view_for_mpi(out, op)[0], kind]
        return self.begin(
            call, self.comm.Ireduce_scatter_block, [given, kind], into, how, keep=(given, out), finish=self._get_mean_step(op, out)
        )

    def all_to_all(self, call: Call, given: Array, give: Sequence[int], out: Array, take: Sequence[int]) -> Pending:
        given = _copy_if_overlapping(given, out)
        return self.begin(call, self.comm.Ialltoallv, self._parts(given, give), self._parts(out, take), keep=(given, out))

    def _parts(self, array: Array, counts: Sequence[int]) -> list[Any]:
        sizes = [n * array.itemsize for n in counts]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        return [_to_bytes(array), (sizes, starts), self.MPI.BYTE]

    def send(self, call: Call, to: int, tag: int, array: Array) -> Pending:
        self._tag(call, tag)
        return self.begin(call, self.comm.Isend, self._bytes(array), to, tag, keep=(array,))

    def receive(self, call: Call, source: int | None, tag: int, out: Array) -> Pending:
        self._tag(call, tag)
        sender = self.MPI.ANY_SOURCE if source is None else source
        return Receive(self._post(call, self.comm.Irecv, self._bytes(out), sender, tag), call, self.peers, out)  # type: ignore[arg-type]

    def _tag(self, call: Call, tag: int) -> None:
        largest = self.comm.Get_attr(self.MPI.TAG_UB)
        # MPI's own error does not say which tags it takes.
        if not 0 <= tag <= largest:
            raise ArgumentError(f"{call}: tag {tag} is not between 0 and {largest}, the largest that this MPI takes")

    def barrier(self, call: Call) -> Pending:
        return self.begin(call, self.comm.Ibarrier, keep=())

    def set_timeout(self, seconds: float) -> None:
        self.seconds = self.peers.seconds = seconds

    def drive_in_background(self, pending: Pending) -> None:
        if isinstance(pending, MpiPending):
            driver.add(pending)

    def raise_if_failed(self, call: str) -> None:
        self.peers.raise_if_failed(call)

    def split(self, call: Call, members: Sequence[int]) -> Backend | None:
        self.barrier(call).wait()  # with a timeout, which making a communicator has not
        # MPI_Comm_split is a call of all processes: members would wait for this one.
        if self.rank not in members:
            self.comm.Split(self.MPI.UNDEFINED)
            return None
        comm = self.comm.Split(0, members.index(self.rank))
        return MpiBackend(comm, [self.peers.members[i] for i in members], self.seconds)

    def close(self) -> None:
        if is_lost():  # to free a communicator asks for all of its processes
            return
        self.peers.close()
        self.comm.Free()

    def _bytes(self, array: Array) -> list[Any]:
        return [_to_bytes(array), self.MPI.BYTE]


def _copy_if_overlapping(given: Array, out: Array | None) -> Array:
    """The given array, copied where it shares memory with the written one, as in PyTorch it may: MPI takes no memory for both."""
    # By bounds, not by elements: an exact answer may take exponential time, and a copy that was not needed costs less.
    return given if out is None or not np.may_share_memory(given, out) else copy_array(given)  # type: ignore[arg-type]


def _to_bytes(array: Array) -> np.ndarray:
    """The memory of a C-contiguous array, in bytes."""
    return array.reshape(-1).view(np.uint8)  # type: ignore[return-value]


def _view_for_mpi(array: Array, op: ReduceOp) -> tuple[np.ndarray, Any, Any]:
    seen, kind, how = get_reduction(array.dtype, op)
    flat = array.reshape(-1)
    return (flat if seen is None else flat.view(seen)), kind, how  # type: ignore[return-value]
