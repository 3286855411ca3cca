"""Collectives as functions of tensors: what comes out is new, and backward sends the gradients the other way.

The loss of which gradients are taken is the sum of all processes' losses. Each backward communicates, so that all processes take part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.autograd.function import Function
from tritensor.distributed import collectives
from tritensor.distributed.process_group import joined
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat


def _linear(name: str, op: Any) -> None:
    """Of sums alone the gradient is a sum."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ArgumentError(f"{name}: op is {getattr(op, 'name', op)!r}; gradients go through SUM and AVG")


def _sum(tensor: Tensor, group: Any, op: Any = ReduceOp.SUM) -> Tensor:
    total = tensor.detach().contiguous().clone()
    collectives.all_reduce(total, op, group)
    return total


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        return _sum(tensor, group, op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, _sum(grad, ctx.group, ctx.op)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        out = tensor.detach().clone()
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        total = _sum(grad, ctx.group)
        mine = joined("broadcast", ctx.group)
        return None, None, total if mine.ranks[mine.rank()] == ctx.src else total * 0


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group, ctx.op = dst, group, op
        out = tensor.detach().clone()
        collectives.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        out = grad.detach().contiguous().clone()
        collectives.broadcast(out, ctx.dst, ctx.group)
        return None, None, None, out / joined("reduce", ctx.group).size() if ctx.op is ReduceOp.AVG else out


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        size = joined("all_gather", group).size()
        whole = tensor.new_empty(size, *tensor.shape)
        collectives.all_gather_into_tensor(whole, tensor.detach().contiguous(), group)
        return tuple([whole[i].clone() for i in range(size)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        out = grads[0].new_empty(grads[0].shape)
        collectives.reduce_scatter(out, list(grads), group=ctx.group)
        return None, out


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, *tensors: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        out = tensors[0].new_empty(tensors[0].shape)
        collectives.reduce_scatter(out, [t.detach() for t in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        size = joined("reduce_scatter", ctx.group).size()
        outs = [grad.new_empty(grad.shape) for _ in range(size)]
        collectives.all_gather(outs, grad.detach(), ctx.group)
        return None, None, *([o / size for o in outs] if ctx.op is ReduceOp.AVG else outs)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        mine = joined("gather", group)
        outs = [tensor.detach() * 0 for _ in range(mine.size())]
        collectives.gather(tensor.detach(), outs if mine.ranks[mine.rank()] == dst else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        mine = joined("gather", ctx.group)
        out = grads[0].new_empty(grads[0].shape)
        collectives.scatter(out, list(grads) if mine.ranks[mine.rank()] == ctx.dst else None, ctx.dst, ctx.group)
        return None, None, out


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        mine = joined("scatter", group)
        out = tensors[0].new_empty(tensors[0].shape)
        collectives.scatter(out, [t.detach() for t in tensors] if mine.ranks[mine.rank()] == src else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        mine = joined("scatter", ctx.group)
        outs = [grad.detach() * 0 for _ in range(mine.size())]
        collectives.gather(grad.detach(), outs if mine.ranks[mine.rank()] == ctx.src else None, ctx.src, ctx.group)
        return None, None, *outs


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Sequence[tuple[int, ...]], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [tuple(t.shape) for t in tensors]
        outs = [tensors[0].new_empty(shape) for shape in shapes]
        collectives.all_to_all(outs, [t.detach() for t in tensors], group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        outs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        collectives.all_to_all(outs, [g.detach() for g in grads], ctx.group)
        return None, None, *outs


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors put together by `op`, on all of them."""
    _linear("all_reduce", op)
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process src, on all of them; the others give one of its shape."""
    return _Broadcast.apply(src, group, tensor)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors put together on process dst; the others get their own."""
    _linear("reduce", op)
    return _Reduce.apply(dst, op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, on all of them."""
    return _AllGather.apply(group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, on process dst; the others get zeros."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process' tensor of those of process src; the others give tensors of their shape."""
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This process' part of all processes' lists put together. `output` says its shape and stays what it is."""
    _linear("reduce_scatter", op)
    return _ReduceScatter.apply(op, group, *input_list)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """A tensor of the list to each process, and one of each. `output_tensor_list` says the shapes that come and stays what it is."""
    return _AllToAll.apply(group, [tuple(t.shape) for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None, group: Any = None
) -> Tensor:  # fmt: skip
    """Parts of input to each process, and one of each, joined. `output` says the shape that comes and stays what it is."""
    size = joined("all_to_all_single", group).size()
    gives, takes = input_split_sizes or [input.shape[0] // size] * size, output_split_sizes or [output.shape[0] // size] * size
    if sum(gives) != input.shape[0] or sum(takes) != output.shape[0]:
        raise ArgumentError(
            f"all_to_all_single: parts of {gives} and {takes} for input {tuple(input.shape)} and output {tuple(output.shape)}; give sizes that add up"
        )
    parts = all_to_all([output.new_empty(n, *output.shape[1:]) for n in takes], input.split(gives), group)
    return cat(parts)
