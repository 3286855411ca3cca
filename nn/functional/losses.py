"""Losses: how far an output is from its target, as one number or one each."""

from __future__ import annotations

import math
from operator import index as as_index
from typing import Any

from tritensor.errors import ShapeError
from tritensor.nn.reduction import named, reduced
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import checked


def _same_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} and target {tuple(target.shape)} must have one shape; reshape or expand one of them"
        )


def _weighted(name: str, loss: Tensor, weight: Tensor) -> Tensor:
    if weight.shape != loss.shape:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} and input {tuple(loss.shape)} must have one shape; expand the weight")
    return ops.mul(loss, weight)


@checked
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-log softmax(input)[target]: input (batch, classes, ...) and target (batch, ...) of class numbers, or of input's shape holding probabilities.

    "mean" divides by the sum of the targets' weights. Targets equal to ignore_index count nothing.
    """
    reduction = named(size_average, reduce, reduction)
    return ops.cross_entropy(
        input, target, weight, reduction=reduction, ignore_index=as_index(ignore_index), label_smoothing=float(label_smoothing)
    )


@checked
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers."""
    reduction = named(size_average, reduce, reduction)
    dim = 0 if input.ndim == 1 else 1
    if tuple(target.shape) != (*input.shape[:dim], *input.shape[dim + 1 :]):
        raise ShapeError(
            f"nll_loss: input {tuple(input.shape)} and target {tuple(target.shape)}: target has input's shape without its classes, dim {dim}"
        )
    if weight is not None and len(weight.array.shape) != 1:
        raise ShapeError(f"nll_loss: weight {tuple(weight.shape)}: give a vector with a number for each class")
    counted = ops.ne(target, ignore_index)
    safe = ops.where(counted, target, 0)
    loss = -ops.gather(input, safe.unsqueeze(dim), dim=dim).squeeze(dim)
    scale = ops.cast(counted, dtype=input.array.dtype) if weight is None else ops.where(counted, weight[safe], 0.0)
    loss = ops.where(counted, loss * scale, 0.0)
    if reduction == "mean":
        return reduced("nll_loss", loss, "sum") / reduced("nll_loss", scale, "sum")
    return reduced("nll_loss", loss, reduction)


@checked
def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """(input - target)^2, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""
    reduction = named(size_average, reduce, reduction)
    _same_shape("mse_loss", input, target)
    if weight is None:
        return ops.mse_loss(input, target, reduction=reduction)
    return reduced("mse_loss", _weighted("mse_loss", ops.square(ops.sub(input, target)), weight), reduction, weight)


@checked
def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """|input - target|, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""
    reduction = named(size_average, reduce, reduction)
    _same_shape("l1_loss", input, target)
    loss = ops.abs(ops.sub(input, target))
    return reduced("l1_loss", loss if weight is None else _weighted("l1_loss", loss, weight), reduction, weight)


@checked
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid and p = pos_weight, in the form that does not overflow:
    (1 - t) x + (1 + (p - 1) t) softplus(-x)."""
    reduction = named(size_average, reduce, reduction)
    _same_shape("binary_cross_entropy_with_logits", input, target)
    missed = ops.softplus(-input, beta=1.0, threshold=math.inf)  # exact everywhere
    if pos_weight is not None:
        missed = ops.mul(missed, ops.add(ops.mul(ops.sub(pos_weight, 1), target), 1))
    loss = (1 - target) * input + missed
    return reduced("binary_cross_entropy_with_logits", loss if weight is None else ops.mul(loss, weight), reduction)
