"""Losses of classes: the target is one class number, or several."""

from __future__ import annotations

import dataclasses
import math
from operator import index as as_index
from typing import Any, Literal

from tritensor.autograd.saved import borrow_saved
from tritensor.ground.dtypes import of, promote
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.functional.losses.checks import (
    check_floats,
    check_labels,
    reduce_loss,
    reduction_name,
    require_same_shape,
)
from tritensor.ops.table import ops
from tritensor.ops.tuning.variants import note
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked


@checked
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-log softmax(input)[target]: input (batch, classes, ...) and target (batch, ...) of class numbers, or of input's shape holding probabilities.

    "mean" divides by the sum of the targets' weights. Targets equal to ignore_index count nothing. Probabilities of a wider type than input's are
    counted in that type.

    >>> F.cross_entropy(tt.tensor([[2.0, 0.0]]), tt.tensor([0]))  # log(1 + exp(-2))
    tensor(0.1269)
    """
    reduction = reduction_name(size_average, reduce, reduction)
    if ignore_index >= 0 and target.dtype.is_floating_point:
        raise ArgumentError(
            f"cross_entropy: ignore_index is {ignore_index}, and target holds probabilities, {target.dtype.name}; leave it out, or give class numbers"
        )
    if input.ndim == 1:
        target = _to_single_label(target)
    if target.dtype.is_floating_point and target.dtype != input.dtype and input.dtype.is_floating_point:
        kind = of(promote(input._array.dtype, target._array.dtype, "cross_entropy"))  # what the probabilities hold is not rounded away
        input, weight = input.to(kind), None if weight is None else weight.to(kind)
    return ops.cross_entropy(
        input, target, weight, reduction=reduction, ignore_index=as_index(ignore_index), label_smoothing=float(label_smoothing)
    )


@checked
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers; "mean" divides by the targets' weights."""
    reduction = reduction_name(size_average, reduce, reduction)
    if input.ndim == 1:
        target = _to_single_label(target)
    return ops.nll_loss(input, target, weight, reduction=reduction, ignore_index=as_index(ignore_index))


def _to_single_label(target: Tensor) -> Tensor:
    """The label of a single sample, which may come as a batch of one."""
    return target.reshape(()) if target._array.shape == (1,) and target.dtype.kind in ("int", "uint") else target


def _to_rows(name: str, input: Tensor, target: Tensor, per_row: bool) -> tuple[Tensor, Tensor]:
    """(batch, classes) and (batch,), or (batch, classes); of a single sample a batch of one. Raises ShapeError."""
    if not input.ndim and target.ndim < 2 and target._array.size == 1:
        return input.reshape((1, 1)), target.reshape((1, 1) if per_row else (1,))
    wanted = tuple(input.shape) if per_row else tuple(input.shape[:-1])
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise ShapeError(f"{name}: input {tuple(input.shape)}; give (batch, classes) or (classes,), of at least one class")
    given = tuple(target.shape)
    if given != wanted and not (input.ndim == 1 and not per_row and given == (1,)):
        raise ShapeError(f"{name}: input {tuple(input.shape)} and target {given}: target is {wanted}; reshape it")
    if input.ndim == 1:
        return input.unsqueeze(0), target.reshape((1, -1) if per_row else (1,))
    return input, target


@checked
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """sum over classes j but the target y of weight[y] max(0, margin - x[y] + x[j])^p, by the number of classes: input (batch, classes), target (batch)."""
    name = "multi_margin_loss"
    reduction = reduction_name(size_average, reduce, reduction, name)
    check_floats(name, input=input)
    if p not in (1, 2):
        raise ArgumentError(f"{name}: p is {p!r}; only 1 and 2 are known")
    x, y = _to_rows(name, input, target, False)
    classes = x.shape[1]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"{name}: weight {tuple(weight.shape)}: give a vector with a number for each class, ({classes},)")
    check_labels(name, y, classes)
    places = y.long().unsqueeze(1)
    loss = ops.clamp(margin - ops.gather(x, places, dim=1) + x, 0, None)
    loss = loss if p == 1 else ops.square(loss)
    if weight is not None:
        loss = loss * weight[places]
    numbers = ops.arange(start=0, end=classes, step=1, dtype=places._array.dtype, device=x.device)
    loss = ops.where(ops.eq(numbers, places), 0.0, loss).sum(1) / classes
    return reduce_loss(name, loss.reshape(tuple(target.shape)) if input.ndim < 2 else loss, reduction)


@checked
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """sum over targets y and classes i that are none of max(0, 1 - x[y] + x[i]), by the number of classes: input and target (batch, classes), a row of the
    target holds class numbers and ends at the first -1."""
    name = "multilabel_margin_loss"
    reduction = reduction_name(size_average, reduce, reduction, name)
    check_floats(name, input=input)
    x, y = _to_rows(name, input, target, True)
    classes = x.shape[1]
    check_labels(name, y, classes, -1)
    y = y.long()
    named_ = ops.eq(ops.cast(ops.lt(y, 0), dtype=y._array.dtype).cumsum(1), 0)  # up to the first -1
    # gather refuses -1; what is gathered for it is masked again below
    safe = ops.where(named_, y, 0)
    hits = ops.full(shape=tuple(x.shape), value=0, dtype=y._array.dtype, device=x.device).scatter_add(1, safe, named_.long())
    away = ops.clamp(1 - ops.gather(x, safe, dim=1).unsqueeze(2) + x.unsqueeze(1), 0, None)  # (batch, targets, classes)
    counts = ops.logical_and(named_.unsqueeze(2), ops.eq(hits, 0).unsqueeze(1))
    loss = ops.where(counts, away, 0.0).sum((1, 2)) / classes
    return reduce_loss(name, loss.squeeze(0) if input.ndim < 2 else loss, reduction)


@checked
@borrow_saved
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """binary_cross_entropy_with_logits of every class, its mean over the classes (the last dimension)."""
    name = "multilabel_soft_margin_loss"
    reduction = reduction_name(size_average, reduce, reduction, name)
    require_same_shape(name, input, target)
    loss = ops.bce_with_logits(input, target, reduction="none")
    loss = loss if weight is None else ops.mul(loss, weight)
    return reduce_loss(name, loss.mean(-1), reduction)


_WHOLE = 1 << 28  # bytes of logits from which on linear_cross_entropy works by chunks


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """That linear_cross_entropy works by chunks of rows, `batch_chunk_size` of them (None: what 256 MiB of logits hold). The other fields change nothing:
    every chunk's products are added in float32, and its graph may be kept and differentiated again."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: Any = None


@checked
@borrow_saved
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None, reduction: str = "mean",
    ignore_index: int | None = None, label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
) -> Tensor:  # fmt: skip
    """cross_entropy of linear(input, linear_weight, linear_bias): input (batch, features), linear_weight (classes, ..., features).

    With `options`, or where logits would take more than 256 MiB, chunk by chunk: at no time are there logits of all rows, in the backward either, where
    they are computed again. Class numbers for a batch, without `weight`, are served so; all else by the two functions, which tt.debug.variants() tells.
    """
    if options is not None and not isinstance(options, LinearCrossEntropyOptions):
        raise TypeError(f"linear_cross_entropy: options is a {type(options).__name__}; give a nn.LinearCrossEntropyOptions, or None")
    if linear_weight.ndim < 2 or not input.ndim or linear_weight.shape[-1] != input.shape[-1]:
        raise ShapeError(
            f"linear_cross_entropy: input {tuple(input.shape)} and linear_weight {tuple(linear_weight.shape)}: give (batch, features) or (features,), "
            "and (classes, ..., features)"
        )
    outer = tuple(linear_weight.shape[:-1])
    if len(outer) > 1 and input.ndim == 1:
        raise ShapeError(
            f"linear_cross_entropy: linear_weight {tuple(linear_weight.shape)} has several classes for each sample, input {tuple(input.shape)} no batch; "
            "give (batch, features)"
        )
    if ignore_index is not None and target.dtype.is_floating_point:
        raise ArgumentError("linear_cross_entropy: ignore_index goes with class numbers, and target holds probabilities; leave it out")
    if linear_bias is not None and tuple(linear_bias.shape) != outer:
        raise ShapeError(
            f"linear_cross_entropy: linear_bias {tuple(linear_bias.shape)} is not {outer}, linear_weight's shape without its features; reshape it"
        )
    chunk = 0 if options is None else options.batch_chunk_size or 0
    large = math.prod(outer) * math.prod(input.shape[:-1]) * input.element_size() > _WHOLE
    plain = input.ndim == 2 and len(outer) == 1 and weight is None and not target.dtype.is_floating_point
    if plain and (options is not None or large):
        loss = ops.linear_cross_entropy(
            input, linear_weight, target, linear_bias, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
            label_smoothing=float(label_smoothing), chunk=chunk,
        )  # fmt: skip
        return loss.to(input.dtype)  # type: ignore[no-any-return]
    if options is not None or large:
        note(
            "linear_cross_entropy",
            "whole logits",
            "classes weigh differently, target holds probabilities, or it is of no batch; chunks take class numbers of a batch",
        )
    flat = linear_weight.reshape((math.prod(outer), linear_weight.shape[-1]))
    logits = ops.linear(input, flat, None if linear_bias is None else linear_bias.reshape((-1,)))
    return cross_entropy(  # type: ignore[no-any-return]
        logits.reshape((*input.shape[:-1], *outer)), target, weight, ignore_index=-100 if ignore_index is None else ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
