"""The interface of backends: collectives over arrays, begun at once and waited for later. Tensors, lists and layouts are the caller's affair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import device
from tritensor.ops.array import Array


class Pending(ABC):
    """A call that has begun. Its arrays belong to it until it is done. `ended`: time.perf_counter() when it was seen to be, 0 where nobody looked."""

    ended: float = 0.0

    @abstractmethod
    def done(self) -> bool:
        """Whether it is done; never waits."""

    @abstractmethod
    def wait(self, seconds: float | None = None) -> None:
        """Wait: what is computed after this on the same thread (on a GPU: on its current stream) sees the results.

        Raises RankFailedError, which names who is missing, where they are not there within `seconds` (of the group, where None is given).
        """

    def source(self) -> int:
        """Of a receive that is done, the number in the group of who sent."""
        raise NotImplementedError(f"{type(self).__name__}: only a receive knows who sent")


class Finished(Pending):
    """A call that was done when it returned."""

    def __init__(self, source: int = 0) -> None:
        self._source = source

    def done(self) -> bool:
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Nothing is left to wait for."""

    def source(self) -> int:
        return self._source


class Backend(ABC):
    """The processes of one group, numbered 0 to size - 1, over one library, for arrays on one kind of device.

    All arrays are C-contiguous, on a device that `check_device` lets pass, and of element types that the reduction takes (see reduce_op.py).
    `whole` arrays hold `size` parts of equal length, that of process 0 first. `call` says for messages what is going on and where. Every
    process of the group makes the same calls in the same order. Calls write their last array argument, `out`.
    """

    name: str
    rank: int
    size: int
    device: device  # a device whose memory it reaches
    seconds: float = 1800.0  # how long a call waits for the other processes

    @abstractmethod
    def check_device(self, call: str, array: Array) -> None:
        """Raise DeviceError where the backend cannot reach the array's memory; `call` is the public function's name."""

    @abstractmethod
    def all_reduce(self, call: Call, op: ReduceOp, out: Array) -> Pending:
        """out = op over all processes' `out`."""

    @abstractmethod
    def reduce(self, call: Call, op: ReduceOp, root: int, out: Array) -> Pending:
        """The same on `root`; elsewhere `out` stays what it is."""

    @abstractmethod
    def broadcast(self, call: Call, root: int, out: Array) -> Pending:
        """out = root's `out`."""

    @abstractmethod
    def all_gather(self, call: Call, part: Array, out: Array) -> Pending:
        """Whole `out` = all processes' `part`."""

    @abstractmethod
    def gather(self, call: Call, root: int, part: Array, out: Array | None) -> Pending:
        """The same on `root`; elsewhere `out` is None."""

    @abstractmethod
    def scatter(self, call: Call, root: int, whole: Array | None, out: Array) -> Pending:
        """out = this process' part of root's `whole`, which is None elsewhere."""

    @abstractmethod
    def reduce_scatter(self, call: Call, op: ReduceOp, whole: Array, out: Array) -> Pending:
        """out = this process' part of op over all processes' `whole`."""

    @abstractmethod
    def all_to_all(self, call: Call, given: Array, give: Sequence[int], out: Array, take: Sequence[int]) -> Pending:
        """Process i gets `give[i]` elements of `given`, one after the other; out = `take[i]` elements from each process i."""

    @abstractmethod
    def send(self, call: Call, to: int, tag: int, array: Array) -> Pending:
        """Send `array` to another process."""

    @abstractmethod
    def receive(self, call: Call, source: int | None, tag: int, out: Array) -> Pending:
        """Receive `out` from another process; from whoever sends, where `source` is None. Raises ShapeError where another size arrives."""

    @abstractmethod
    def barrier(self, call: Call) -> Pending:
        """Done when all processes are here."""

    def together(self) -> AbstractContextManager[None]:
        """Around sends and receives that may wait for one another: they begin as one."""
        return nullcontext()

    @abstractmethod
    def split(self, call: Call, members: Sequence[int]) -> Backend | None:
        """A backend over some of the processes, which all processes of this one ask for; None for those that are no members."""

    def set_timeout(self, seconds: float) -> None:
        """Set how long calls wait for the other processes from now on."""
        self.seconds = seconds

    def drive_in_background(self, pending: Pending) -> None:  # noqa: B027 (by default there is nothing to do)
        """The call goes on while the program does something else, without anybody waiting for it."""

    def raise_if_failed(self, call: str) -> None:  # noqa: B027 (by default there is nothing to do)
        """Raise RankFailedError where the group has failed before."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the library holds. Further calls raise."""
