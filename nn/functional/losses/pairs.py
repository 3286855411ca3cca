"""Losses of pairs and triples: inputs that belong together are drawn near, others pushed apart by a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.saved import borrow_saved
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.functional.losses.checks import broadcast_to_one, check_flags, check_reduction, reduce_loss, reduction_name
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.images import pairwise_distance
from tritensor.tensor.public_api.publish import checked


def _require_same_dims(name: str, **tensors: Tensor) -> None:
    if len({x.ndim for x in tensors.values()}) > 1:
        first, second, third = (f"{label} {tuple(x.shape)}" for label, x in tensors.items())
        raise ShapeError(f"{name}: {first}, {second} and {third} should have the same dimensions; reshape them")


@checked
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = reduction_name(size_average, reduce, reduction, "hinge_embedding_loss")
    # asked for its refusals alone: the ops below broadcast by themselves
    broadcast_to_one("hinge_embedding_loss", ("input", input), ("target", target))
    apart = ops.where(ops.ne(target, 1), ops.clamp(ops.sub(margin, input), 0, None), 0.0)
    return reduce_loss("hinge_embedding_loss", ops.add(apart, ops.where(ops.ne(target, -1), input, 0.0)), reduction)


@checked
@borrow_saved
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - t (x1 - x2)): t = 1 wants the first the larger, -1 the second."""
    name = "margin_ranking_loss"
    reduction = reduction_name(size_average, reduce, reduction, name)
    _require_same_dims(name, input1=input1, input2=input2, target=target)
    input1, input2, target = broadcast_to_one(name, ("input1", input1), ("input2", input2), ("target", target))
    return reduce_loss(name, ops.clamp(ops.sub(margin, ops.mul(target, ops.sub(input1, input2))), 0, None), reduction)


@checked
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos - margin) where it is -1: inputs (batch, features) and target (batch,), or (features,) and ()."""
    name = "cosine_embedding_loss"
    reduction = reduction_name(size_average, reduce, reduction, name)
    if target.ndim not in (0, 1):
        raise ShapeError(f"{name}: target {tuple(target.shape)} has {target.ndim} dimensions; give (batch,) or ()")
    a, b = tuple(input1.shape), tuple(input2.shape)
    if len(a) != target.ndim + 1 or len(b) != target.ndim + 1 or (a != b and 1 not in (*a, *b)):
        raise ShapeError(
            f"{name}: input1 {a}, input2 {b} and target {tuple(target.shape)}: give (batch, features) twice with (batch,), or (features,) with ()"
        )
    tiny = 1e-12  # PyTorch's, under the root: vectors of 0 have a cosine of 0
    dot = ops.mul(input1, input2).sum(-1)
    lengths = ops.mul(ops.add(ops.mul(input1, input1).sum(-1), tiny), ops.add(ops.mul(input2, input2).sum(-1), tiny))
    cosine, target = broadcast_to_one(name, ("the inputs' rows", ops.div(dot, ops.sqrt(lengths))), ("target", target))
    near = ops.where(ops.eq(target, 1), ops.sub(1, cosine), 0.0)
    return reduce_loss(name, ops.add(near, ops.where(ops.eq(target, -1), ops.clamp(ops.sub(cosine, margin), 0, None), 0.0)), reduction)


@checked
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d = |a - b + eps|_p over the last dimension. swap: the positive stands for the anchor
    where it is nearer to the negative (Balntas et al. 2016)."""
    reduction = reduction_name(size_average, reduce, reduction)
    name = "triplet_margin_loss"
    _require_same_dims(name, anchor=anchor, positive=positive, negative=negative)
    return _triplet_loss(name, anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction)


@checked
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """triplet_margin_loss by any distance function of two tensors; pairwise_distance where none is given."""
    name, distance = "triplet_margin_with_distance_loss", distance_function
    if distance is None:
        distance = pairwise_distance
        _require_same_dims(name, anchor=anchor, positive=positive, negative=negative)  # a function of the user's may take others
    elif not callable(distance):
        raise TypeError(f"{name}: distance_function is a {type(distance).__name__}; give a function of two tensors")
    return _triplet_loss(name, anchor, positive, negative, distance, margin, swap, reduction)


def _triplet_loss(
    name: str, anchor: Tensor, positive: Tensor, negative: Tensor, distance: Any, margin: float, swap: bool, reduction: str
) -> Tensor:
    check_reduction(name, reduction)
    check_flags(name, swap=swap)
    if margin <= 0:
        raise ArgumentError(f"{name}: margin is {margin}; it must be above 0")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduce_loss(name, ops.clamp(ops.sub(ops.add(near, margin), far), 0, None), reduction)
