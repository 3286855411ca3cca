"""Collectives as functions of tensors: what comes out is new, and backward sends the gradients the other way.

The loss of which gradients are taken is the sum of all processes' losses. Each backward communicates, so that all processes take part in it: on
all of them the tensor requires a gradient, or on none. Derivatives of every order are there, since each backward is such a function again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.autograd.function import Function
from tritensor.autograd.modes import is_grad_enabled
from tritensor.distributed import collectives
from tritensor.distributed.arguments import check_tensors
from tritensor.distributed.process_group import ProcessGroup, require_group
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def _check_linear(name: str, op: Any, *tensors: Any) -> None:
    """Of sums alone the gradient is a sum."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG) and is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in tensors):
        raise ArgumentError(
            f"{name}: op is {getattr(op, 'name', op)!r}, and the tensor requires a gradient, which goes through SUM and AVG alone; detach() it"
        )


def _is_root(group: ProcessGroup, rank: int) -> bool:
    """Whether this process is that one of the world."""
    return group.ranks[group.rank()] == rank


def _to_row(t: Tensor) -> Tensor:
    """The memory of a tensor outside of the graph, that of a number as a row of one."""
    return t.detach() if t.ndim else t.detach().reshape(1)


def _to_rows(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [_to_row(t) for t in tensors]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        # A copy: the collective writes in place, and the caller's tensor belongs to the graph.
        total = tensor.detach().contiguous().clone()
        collectives.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        # The loss is the sum of all processes' losses, so each one's gradient reaches every input.
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        out = tensor.detach().contiguous().clone()
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, False, grad)


class _Reduce(Function):
    """`keeps`: whether the other processes get their own tensors back, or zeros."""

    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, keeps: bool, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group, ctx.op = dst, group, op
        out = tensor.detach().contiguous().clone()
        collectives.reduce(out, dst, op, group)
        # As the gradient of broadcast: the others' tensors were not used, so their gradients are zeros.
        return out if keeps or _is_root(require_group("reduce", group), dst) else out.zero_()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        out = _Broadcast.apply(ctx.dst, ctx.group, grad)
        return None, None, None, None, out / require_group("reduce", ctx.group).size() if ctx.op is ReduceOp.AVG else out


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        outs = tuple([tensor.new_empty(tensor.shape) for _ in range(require_group("all_gather", group).size())])
        collectives.all_gather(_to_rows(outs), _to_row(tensor), group)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[0].new_empty(grads[0].shape), *grads)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        # The result is written to `output`, which becomes part of the graph.
        ctx.mark_dirty(output)
        collectives.reduce_scatter(_to_row(output), _to_rows(tensors), op, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        outs = _AllGather.apply(ctx.group, grad)
        return None, None, None, *([o / len(outs) for o in outs] if ctx.op is ReduceOp.AVG else outs)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        world = require_group("gather", group)
        # Zeros are what PyTorch's gather gives on the other processes.
        outs = tuple([tensor.new_zeros(tensor.shape) for _ in range(world.size())])
        collectives.gather(_to_row(tensor), _to_rows(outs) if _is_root(world, dst) else None, dst, group)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        out = tensors[0].new_empty(tensors[0].shape)
        collectives.scatter(_to_row(out), _to_rows(tensors) if _is_root(require_group("scatter", group), src) else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _AllToAll(Function):
    """`tensors`: those that are written, then those that are sent, one of each for each process."""

    @staticmethod
    def forward(ctx: Any, group: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        n = len(tensors) // 2
        outs, given = tensors[:n], tensors[n:]
        ctx.group, ctx.shapes = group, [t.shape for t in given]
        ctx.mark_dirty(*outs)
        collectives.all_to_all(_to_rows(outs), _to_rows(given), group)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, *[None] * len(grads), *_AllToAll.apply(ctx.group, *[grads[0].new_empty(s) for s in ctx.shapes], *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, takes: Any, gives: Any, output: Tensor, tensor: Tensor) -> Tensor:
        ctx.group, ctx.takes, ctx.gives, ctx.shape = group, takes, gives, tensor.shape
        ctx.mark_dirty(output)
        collectives.all_to_all_single(output.detach(), tensor.detach(), takes, gives, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.gives, ctx.takes, grad.new_empty(ctx.shape), grad)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors put together by `op`, on all of them. Raises ValueError for an op but SUM and AVG where a gradient is asked for."""
    _check_linear("all_reduce", op, tensor)
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process src, on all of them; the others give one of its shape."""
    return _Broadcast.apply(src, group, tensor)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors put together on process dst; the others get their own. Raises ValueError as all_reduce does."""
    _check_linear("reduce", op, tensor)
    return _Reduce.apply(dst, op, group, True, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, on all of them."""
    return _AllGather.apply(group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, on process dst; the others get zeros."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process' tensor of those of process src; the others give tensors of their shape. Raises ValueError where there is none."""
    check_tensors("scatter", "tensors", tensors)
    if not tensors:
        raise ArgumentError("scatter: tensors is empty; give one for each process on all of them, whose shape is what the others need")
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This process' part of all processes' lists put together, which is written to `output`. Raises ValueError as all_reduce does."""
    check_tensors("reduce_scatter", "input_list", input_list)
    _check_linear("reduce_scatter", op, *input_list)
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """A tensor of the list to each process, and one of each, which are written to those of `output_tensor_list`.

    Raises ValueError where the lists do not hold one for each process.
    """
    check_tensors("all_to_all", "output_tensor_list", output_tensor_list)
    check_tensors("all_to_all", "input_tensor_list", input_tensor_list)
    if len(output_tensor_list) != len(input_tensor_list):
        raise ArgumentError(
            f"all_to_all: {len(output_tensor_list)} tensors to receive and {len(input_tensor_list)} to send; give one of each for each process"
        )
    return _AllToAll.apply(group, *output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None, group: Any = None
) -> Tensor:  # fmt: skip
    """Parts of input to each process, and one of each, which are written to `output` one after the other.

    Raises ValueError for sizes that do not add up to the first dimension.
    """
    return _AllToAllSingle.apply(group, output_split_sizes, input_split_sizes, output, input)
