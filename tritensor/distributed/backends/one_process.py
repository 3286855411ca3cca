"""The backend of a group of one process: every result is its own contribution. It needs no library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritensor.distributed.backends.interface import Backend, Finished, Pending
from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import cpu
from tritensor.ground.errors import ArgumentError
from tritensor.ops.array import Array, CudaArray, empty_like
from tritensor.ops.lazy_array import settle
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import registry


def copy_into(out: Array, array: Array) -> None:
    """out = array, on either device."""
    out, array = settle(out), settle(array)
    # A kernel on the current stream: numpy does not reach a GPU's memory.
    if isinstance(out, CudaArray):
        registry["copy"].forward(array, out=out)  # type: ignore[misc]
    elif type(out) is not MetaArray:
        np.copyto(out, array)  # type: ignore[arg-type]


def copy_array(array: Array) -> Array:
    """A copy, C-contiguous and on the same device."""
    out = empty_like(array)
    copy_into(out, array)
    return out


def _finish_copy(out: Array, array: Array) -> Pending:
    copy_into(out, array.reshape(out.shape))
    return Finished()


class OneProcess(Backend):
    """See the interface; there is nobody to send to."""

    name, rank, size, device = "one process", 0, 1, cpu

    def check_device(self, call: str, array: Array) -> None:
        """Every device is this process' own."""

    def all_reduce(self, call: Call, op: ReduceOp, out: Array) -> Pending:
        return Finished()

    def reduce(self, call: Call, op: ReduceOp, root: int, out: Array) -> Pending:
        return Finished()

    def broadcast(self, call: Call, root: int, out: Array) -> Pending:
        return Finished()

    def all_gather(self, call: Call, part: Array, out: Array) -> Pending:
        return _finish_copy(out, part)

    def gather(self, call: Call, root: int, part: Array, out: Array | None) -> Pending:
        assert out is not None
        return _finish_copy(out, part)

    def scatter(self, call: Call, root: int, whole: Array | None, out: Array) -> Pending:
        assert whole is not None
        return _finish_copy(out, whole)

    def reduce_scatter(self, call: Call, op: ReduceOp, whole: Array, out: Array) -> Pending:
        return _finish_copy(out, whole)

    def all_to_all(self, call: Call, given: Array, give: Sequence[int], out: Array, take: Sequence[int]) -> Pending:
        return _finish_copy(out, given)

    def send(self, call: Call, to: int, tag: int, array: Array) -> Pending:
        raise ArgumentError(f"{call}: there is no other process in the group to send to")

    def receive(self, call: Call, source: int | None, tag: int, out: Array) -> Pending:
        raise ArgumentError(f"{call}: there is no other process in the group to receive from")

    def barrier(self, call: Call) -> Pending:
        return Finished()

    def split(self, call: Call, members: Sequence[int]) -> Backend | None:
        # new_group([]) is legal, and this process is no member of it.
        return OneProcess() if members else None

    def close(self) -> None:
        """Nothing is held."""
