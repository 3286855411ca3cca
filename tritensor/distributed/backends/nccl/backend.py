"""NcclBackend: collectives over arrays on GPUs, each queued on the communicator's stream and waited for by streams, not by the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any

import numpy as np

from tritensor.cuda.devices import index_of
from tritensor.cuda.runtime.active import emulated
from tritensor.distributed.backends.interface import Backend, Pending
from tritensor.distributed.backends.nccl.communicator import Communicator
from tritensor.distributed.backends.nccl.library import ID_BYTES, get_move_type, get_reduce_type
from tritensor.distributed.backends.one_process import copy_array
from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import gpu
from tritensor.ground.errors import ArgumentError, DeviceError
from tritensor.ops.array import Array, CudaArray, device_of, empty


class NcclBackend(Backend):
    """The processes of one NCCL communicator, which belongs to this backend. See the interface.

    A call waits, on a stream of the backend's own, for what the current stream was given so far; waiting for it lets the current stream
    wait, and the host goes on. Only `barrier`, and a wait with seconds, stop the host. NCCL does not say how much was received: where
    another size arrives than `receive` takes, it reports an error of its own or fills a part.

    Args:
        rank, size: this process among those of the communicator.
        unique_id: the bytes that `unique_id()` made, the same on all of them.
        device: the GPU of this process; no two processes may have the same one.
        seconds: how long a call waits for the other processes.

    Raises:
        ModuleNotFoundError, DistBackendError: nccl4py or NCCL is missing; the message says what to install.
        DeviceError: there is no such GPU, or it is emulated.
        ValueError: a rank, size or unique id that makes no sense.
        RankFailedError: a process does not come within the timeout.
    """

    name = "nccl"

    def __init__(self, rank: int, size: int, unique_id: bytes, device: Any = None, seconds: float = 1800.0) -> None:
        who = "init_process_group"
        if not 0 <= rank < size:
            raise ArgumentError(f"{who}: rank {rank} of {size} processes; ranks go from 0 to {size - 1}")
        if len(unique_id) != ID_BYTES:
            raise ArgumentError(
                f"{who}: the unique id has {len(unique_id)} bytes, NCCL's have {ID_BYTES}; give what unique_id() made on rank 0"
            )
        if emulated():
            raise DeviceError(
                f"{who}: device cuda is emulated (TRITON_INTERPRET=1), and NCCL needs GPUs; unset it, or use the backend 'mpi' for the CPU"
            )
        self._set_communicator(Communicator.connect(who, rank, size, bytes(unique_id), index_of(device), seconds))

    def _set_communicator(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self.rank, self.size, self.seconds = communicator.rank, communicator.size, communicator.seconds
        self.device = gpu(communicator.index)
        self._token = empty((1,), np.dtype(np.int32), self.device)  # what a barrier sends

    def check_device(self, call: str, array: Array) -> None:
        own, on = self.device, device_of(array)
        if not isinstance(array, CudaArray):
            raise DeviceError(
                f"{call}: the tensor is on {on}, and this group's NCCL communicator is on {own}; move it with .cuda(), or make the group with "
                "'cpu:mpi,cuda:nccl'"
            )
        # NCCL would read the other GPU's memory at an address that means something else there.
        if on != own:
            raise DeviceError(
                f"{call}: the tensor is on {on}, and this group's NCCL communicator is on {own}; move it with .to('{own}'), or call "
                f"tritensor.cuda.set_device({on.index}) before init_process_group"
            )

    # collectives
    def all_reduce(self, call: Call, op: ReduceOp, out: Array) -> Pending:
        kind, count, how = self._get_reduce_arguments(call, out, op)
        at = out.data_ptr()
        return self._begin(call, [out], [self._make_step("all_reduce", at, at, count, kind, how)] if count else [])

    def reduce(self, call: Call, op: ReduceOp, root: int, out: Array) -> Pending:
        kind, count, how = self._get_reduce_arguments(call, out, op)
        # Elsewhere than on the root NCCL may use the memory to receive in, and `out` stays what it is.
        into = out if self.rank == root or not count else empty(out.shape, out.dtype, self.device)
        step = self._make_step("reduce", out.data_ptr(), into.data_ptr(), count, kind, how, root)
        return self._begin(call, [out, into], [step] if count else [])

    def broadcast(self, call: Call, root: int, out: Array) -> Pending:
        kind, each = get_move_type(out.dtype)
        at = out.data_ptr()
        return self._begin(call, [out], [self._make_step("broadcast", at, at, out.size * each, kind, root)] if out.size else [])

    def all_gather(self, call: Call, part: Array, out: Array) -> Pending:
        kind, each = get_move_type(part.dtype)
        part = _copy_if_overlapping(part, out, self.rank * part.nbytes)
        step = self._make_step("all_gather", part.data_ptr(), out.data_ptr(), part.size * each, kind)
        return self._begin(call, [part, out], [step] if part.size else [])

    def gather(self, call: Call, root: int, part: Array, out: Array | None) -> Pending:
        part = part if out is None else _copy_if_overlapping(part, out)
        steps = self._sends(part, [part.size], [root])
        if out is not None:
            steps += self._receives(out, [part.size] * self.size, range(self.size))
        return self._begin(call, [part] if out is None else [part, out], steps)

    def scatter(self, call: Call, root: int, whole: Array | None, out: Array) -> Pending:
        whole = None if whole is None else _copy_if_overlapping(whole, out)
        steps = [] if whole is None else self._sends(whole, [out.size] * self.size, range(self.size))
        steps += self._receives(out, [out.size], [root])
        return self._begin(call, [out] if whole is None else [whole, out], steps)

    def reduce_scatter(self, call: Call, op: ReduceOp, whole: Array, out: Array) -> Pending:
        kind, count, how = self._get_reduce_arguments(call, out, op)
        whole = _copy_if_overlapping(whole, out, -self.rank * out.nbytes)
        step = self._make_step("reduce_scatter", whole.data_ptr(), out.data_ptr(), count, kind, how)
        return self._begin(call, [whole, out], [step] if count else [])

    def all_to_all(self, call: Call, given: Array, give: Sequence[int], out: Array, take: Sequence[int]) -> Pending:
        given = _copy_if_overlapping(given, out)
        steps = self._sends(given, give, range(self.size)) + self._receives(out, take, range(self.size))
        return self._begin(call, [given, out], steps)

    # between two processes
    def send(self, call: Call, to: int, tag: int, array: Array) -> Pending:
        return self._begin(call, [array], self._sends(array, [array.size], [to]))

    def receive(self, call: Call, source: int | None, tag: int, out: Array) -> Pending:
        if source is None:
            raise ArgumentError(
                f"{call}: NCCL does not receive from whoever sends; name the source (src=...), or send CPU tensors over the backend 'mpi'"
            )
        return self._communicator.begin(call, [out], self._receives(out, [out.size], [source]), source=source)

    def together(self) -> AbstractContextManager[None]:
        return self._communicator.together()

    def barrier(self, call: Call) -> Pending:
        at = self._token.data_ptr()
        kind, each = get_move_type(self._token.dtype)
        return self._communicator.begin(call, [self._token], [self._make_step("all_reduce", at, at, each, kind, 2)], on_host=True)

    # the group
    def set_timeout(self, seconds: float) -> None:
        self.seconds = self._communicator.seconds = seconds

    def raise_if_failed(self, call: str) -> None:
        self._communicator.raise_if_failed(call)

    def check(self) -> None:
        """Ask NCCL for errors, and whether a call that nobody waits for is too late. Raises RankFailedError or DistBackendError."""
        self._communicator.check()

    def split(self, call: Call, members: Sequence[int]) -> NcclBackend | None:
        number = list(members).index(self.rank) if self.rank in members else -1
        made = self._communicator.split(call, number, len(members))
        # No member: it has taken part in the split, which NCCL waits for.
        if made is None:
            return None
        child = NcclBackend.__new__(NcclBackend)
        child._set_communicator(made)
        return child

    def close(self) -> None:
        self._communicator.close()

    # what NCCL is told
    def _begin(self, call: Call, arrays: Sequence[Array], steps: Sequence[Callable[[], None]]) -> Pending:
        return self._communicator.begin(call, arrays, steps)

    def _make_step(self, name: str, *args: int) -> Callable[[], None]:
        """A call of NCCL's function of that name on the communicator and its stream."""
        on = self._communicator
        function = getattr(on.api, name)
        return lambda: function(*args, on.comm, on.stream.cuda_stream)

    def _get_reduce_arguments(self, call: Call, array: Array, op: ReduceOp) -> tuple[int, int, int]:
        (kind, each), how = get_reduce_type(call, array.dtype, op)
        return kind, array.size * each, how

    def _sends(self, array: Array, counts: Sequence[int], peers: Sequence[int]) -> list[Callable[[], None]]:
        return self._messages("send", array, counts, peers)

    def _receives(self, array: Array, counts: Sequence[int], peers: Sequence[int]) -> list[Callable[[], None]]:
        return self._messages("recv", array, counts, peers)

    def _messages(self, name: str, array: Array, counts: Sequence[int], peers: Sequence[int]) -> list[Callable[[], None]]:
        """One message for each peer, of so many elements, which lie one after the other."""
        kind, each = get_move_type(array.dtype)
        starts = accumulate(counts, initial=0)
        at, width = array.data_ptr(), array.itemsize
        return [
            self._make_step(name, at + start * width, n * each, kind, peer)
            for peer, n, start in zip(peers, counts, starts, strict=False)
            if n
        ]


def _copy_if_overlapping(given: Array, out: Array, place: int | None = None) -> Array:
    """The given array, copied where it overlaps with the written one, as in PyTorch it may. NCCL takes both in one memory only where `given` begins
    `place` bytes behind `out`, and in messages never (None)."""
    begin, end = given.data_ptr(), given.data_ptr() + given.nbytes
    to, until = out.data_ptr(), out.data_ptr() + out.nbytes
    if begin >= until or to >= end or (place is not None and begin == to + place):
        return given
    return copy_array(given)
