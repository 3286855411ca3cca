"""Collective communication of tensors, with what it means among one process: every result is this process' own contribution."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.distributed.group import ProcessGroup, asks_outside, joined
from tritensor.errors import ArgumentError, DTypeError, ShapeError
from tritensor.tensor.core import Tensor


class ReduceOp(enum.Enum):
    """How contributions are put together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    @classmethod
    def PREMUL_SUM(cls, factor: float) -> Any:
        """Raises NotImplementedError: multiply before you reduce."""
        raise NotImplementedError("ReduceOp.PREMUL_SUM: not in tritensor; multiply the tensor before you reduce it")


class reduce_op:
    """The older spelling of ReduceOp."""

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX


class Work:
    """What a call with async_op=True returns: among one process it is done before it is returned."""

    def __init__(self, results: Sequence[Tensor] = ()) -> None:
        self._results = list(results)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True, at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None: nothing failed."""

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def source_rank(self) -> int:
        """0."""
        return 0

    def result(self) -> list[Tensor]:
        """The tensors that were written."""
        return self._results


def _done(async_op: bool, *results: Tensor) -> Work | None:
    return Work(results) if async_op else None


def _tensor(name: str, what: str, t: Any) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(
            f"{name}: Invalid function argument: expected parameter `{what}` of type Tensor, but got {type(t).__name__} instead"
        )


def _tensors(name: str, what: str, given: Any) -> None:
    if not isinstance(given, list) or not all(isinstance(t, Tensor) for t in given):
        raise TypeError(f"{name}: Invalid function argument: expected parameter `{what}` of type List[Tensor]; give a list of tensors")


def _root(name: str, what: str, given: int | None, inside: int | None, group: ProcessGroup) -> None:
    """The process that sends or receives: named by its number in the world, or in the group."""
    if given is not None and inside is not None:
        raise ArgumentError(f"{name}: {what} and group_{what} are both given; give one")
    number = inside if inside is not None else given
    ranks = range(group.size()) if inside is not None else group.ranks
    if number not in ranks:
        raise ArgumentError(f"{name}: {what} {number} is not part of {group!r}; its one process is rank 0")


def _op(name: str, op: Any, *tensors: Tensor) -> None:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: op is {op!r}; give a ReduceOp, such as ReduceOp.SUM")
    for t in tensors:
        if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and t.dtype.kind not in ("int", "uint", "bool"):
            raise DTypeError(
                f"{name}: {op.name} is of the bits of integers, and the tensor is {t.dtype.name}; convert it, or use another ReduceOp"
            )


def _parts(name: str, what: str, given: list[Tensor], group: ProcessGroup, like: Tensor) -> None:
    if len(given) != group.size():
        raise ArgumentError(f"{name}: {what} holds {len(given)} tensors for {group.size()} process; give one for each")
    _alike(name, what, given[0], like)


def _alike(name: str, what: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ShapeError(f"{name}: {what} is {a.dtype.name} {tuple(a.shape)}, the tensor {b.dtype.name} {tuple(b.shape)}; give one like it")


def _write(to: Tensor, value: Tensor) -> None:
    with no_grad():
        to.detach().copy_(value.detach())


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put all processes' tensors together by `op`, in place, on all of them."""
    if asks_outside(group):
        return None
    joined("all_reduce", group)
    _tensor("all_reduce", "tensor", tensor)
    _op("all_reduce", op, tensor)
    return _done(async_op, tensor)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: int | None = None
) -> Work | None:
    """Put all processes' tensors together by `op`, in place, on process dst."""
    if asks_outside(group):
        return None
    _tensor("reduce", "tensor", tensor)
    _root("reduce", "dst", dst, group_dst, joined("reduce", group))
    _op("reduce", op, tensor)
    return _done(async_op, tensor)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give all processes the tensor of process src."""
    if asks_outside(group):
        return None
    _tensor("broadcast", "tensor", tensor)
    _root("broadcast", "src", src, group_src, joined("broadcast", group))
    return _done(async_op, tensor)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write every process' tensor into tensor_list, one for each process, on all of them."""
    if asks_outside(group):
        return None
    _tensors("all_gather", "tensor_list", tensor_list)
    _tensor("all_gather", "tensor", tensor)
    _parts("all_gather", "tensor_list", tensor_list, joined("all_gather", group), tensor)
    _write(tensor_list[0], tensor)
    return _done(async_op, *tensor_list)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write every process' tensor, one after the other or stacked, into output_tensor."""
    return _as_one("all_gather_into_tensor", output_tensor, input_tensor, group, async_op)


def _as_one(name: str, output: Tensor, input: Tensor, group: Any, async_op: bool) -> Work | None:
    if asks_outside(group):
        return None
    joined(name, group)
    _tensor(name, "output", output)
    _tensor(name, "input", input)
    if output.numel() != input.numel() or output.dtype != input.dtype:
        raise ShapeError(
            f"{name}: output is {output.dtype.name} {tuple(output.shape)}, input {input.dtype.name} {tuple(input.shape)}: "
            "for one process both hold as many elements of one type"
        )
    _write(output, input.reshape(output.shape))
    return _done(async_op, output)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Write every process' tensor into gather_list on process dst."""
    if asks_outside(group):
        return None
    _tensor("gather", "tensor", tensor)
    world = joined("gather", group)
    _root("gather", "dst", 0 if dst is None and group_dst is None else dst, group_dst, world)
    if not gather_list:
        raise ArgumentError("gather: argument gather_list must be specified on the destination rank; give a list of a tensor")
    _parts("gather", "gather_list", gather_list, world, tensor)
    _write(gather_list[0], tensor)
    return _done(async_op, *gather_list)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give each process its tensor of process src's scatter_list."""
    if asks_outside(group):
        return None
    _tensor("scatter", "tensor", tensor)
    world = joined("scatter", group)
    _root("scatter", "src", 0 if src is None and group_src is None else src, group_src, world)
    if not scatter_list:
        raise ArgumentError("scatter: argument scatter_list must be specified on the source rank; give a list of a tensor")
    _parts("scatter", "scatter_list", scatter_list, world, tensor)
    _write(tensor, scatter_list[0])
    return _done(async_op, tensor)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put all processes' lists together by `op`; each process gets its part."""
    if asks_outside(group):
        return None
    _tensor("reduce_scatter", "output", output)
    _tensors("reduce_scatter", "input_list", input_list)
    _op("reduce_scatter", op, output)
    _parts("reduce_scatter", "input_list", input_list, joined("reduce_scatter", group), output)
    _write(output, input_list[0])
    return _done(async_op, output)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put all processes' tensors together by `op`; each process gets its part of them."""
    _tensor("reduce_scatter_tensor", "input", input)
    _op("reduce_scatter_tensor", op, input)
    return _as_one("reduce_scatter_tensor", output, input, group, async_op)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False) -> Work | None:
    """Send each process a tensor of the list, and receive one of each."""
    if asks_outside(group):
        return None
    _tensors("all_to_all", "output_tensor_list", output_tensor_list)
    _tensors("all_to_all", "input_tensor_list", input_tensor_list)
    world = joined("all_to_all", group)
    if len(input_tensor_list) != world.size():
        raise ArgumentError(
            f"all_to_all: input_tensor_list holds {len(input_tensor_list)} tensors for {world.size()} process; give one for each"
        )
    _parts("all_to_all", "output_tensor_list", output_tensor_list, world, input_tensor_list[0])
    _write(output_tensor_list[0], input_tensor_list[0])
    return _done(async_op, *output_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send each process a part of input, and receive one of each in output."""
    for what, sizes, t in (("output_split_sizes", output_split_sizes, output), ("input_split_sizes", input_split_sizes, input)):
        if sizes and list(sizes) != [t.shape[0]]:
            raise ShapeError(f"all_to_all_single: {what} {sizes} of {tuple(t.shape)}; for one process it is [{t.shape[0]}]")
    return _as_one("all_to_all_single", output, input, group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None) -> Work | None:
    """Wait for all processes of the group: there is none to wait for."""
    if asks_outside(group):
        return None
    joined("barrier", group)
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait for all processes of the group, and name those that do not come: there is none to wait for."""
    barrier(group)


def _to_itself(name: str, what: str, other: int | None, group: Any) -> None:
    world = joined(name, group)
    if other not in (None, *world.ranks):
        raise ArgumentError(f"{name}: {what} {other} is not part of {world!r}; its one process is rank 0")
    raise ArgumentError(f"{name}: {what} must not be the rank of this process itself, and there is no other process in the group")


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to another process. Raises ValueError: there is no other."""
    _tensor("send", "tensor", tensor)
    _to_itself("send", "destination rank", dst if group_dst is None else group_dst, group)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from another process. Raises ValueError: there is no other."""
    _tensor("recv", "tensor", tensor)
    _to_itself("recv", "source rank", src if group_src is None else group_src, group)
    return -1


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Send a tensor to another process, and go on. Raises ValueError: there is no other."""
    send(tensor, dst, group, tag, group_dst)
    return None


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Receive a tensor from another process, and go on. Raises ValueError: there is no other."""
    recv(tensor, src, group, tag, group_src)
    return None
