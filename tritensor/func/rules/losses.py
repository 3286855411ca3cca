"""Batches of losses, dropout and histograms."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.images import fold_examples, unfold_examples
from tritensor.func.rules.registry import Batch, elementwise, loop_examples, rule_for
from tritensor.ground.transforms import transform
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def _reduce(each: Tensor, reduction: str) -> Tensor:
    """Losses of the elements (B, ...) as an example's loss."""
    if reduction == "none":
        return each
    dims = tuple(range(1, len(each._array.shape)))
    if not dims:
        return each
    found: Tensor = (ops.sum if reduction == "sum" else ops.mean)(each, dim=dims, keepdim=False)
    return found


@rule_for(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy bce_with_logits kl_div kl_div_of_logs soft_margin_loss poisson_nll_of_log",
    "poisson_nll",
)
def _sum_elements(b: Batch) -> Any:
    return _reduce(b.run(b.whole(0), b.whole(1), reduction="none"), b.attrs["reduction"])


@rule_for("cross_entropy nll_loss")
def _sum_classes(b: Batch) -> Any:
    """Losses of all rows at once, each example's put together by its own weights."""
    x, target, weight = b.whole(0), b.whole(1), b.values[2]
    if weight is not None and b.flags[2]:  # the op takes one weight of classes
        return loop_examples(b)
    if b.ndim(0) > 1:
        each = unfold_examples(b.run(fold_examples(x), fold_examples(target), weight, reduction="none"), b.size)
    else:  # an example is one row
        each = b.run(x, target, weight, reduction="none")
    reduction = b.attrs["reduction"]
    if reduction != "mean" or target._array.dtype.kind not in "iu":
        return _reduce(each, reduction)
    taken = ops.ne(target, b.attrs["ignore_index"])  # the mean is over what is not ignored, of each example by itself
    weights = ops.cast(taken, dtype=each._array.dtype)
    if weight is not None:
        rows = reshaped(ops.where(taken, target, 0), (target._array.size,))  # ignored targets may be no class
        weights = ops.mul(weights, ops.reshape(ops.index_get(weight, rows, dims=(0,), front=False), shape=target._array.shape))
    dims = tuple(range(1, len(each._array.shape)))
    if not dims:
        return ops.div(each, weights)
    return ops.div(ops.sum(each, dim=dims, keepdim=False), ops.sum(weights, dim=dims, keepdim=False))


rule_for("linear_cross_entropy")(loop_examples)  # each example has its own chunks


@rule_for("ctc_loss")
def _run_on_sequences(b: Batch) -> Any:
    """The examples are further sequences of the batch, the second dimension of the probabilities."""
    rest = [fold_examples(b.whole(i)) for i in (1, 2, 3)]
    return ops.reshape(b.run(channels_in_second(b.whole(0)), *rest), shape=(b.size, b.shape(0)[1]))


def channels_in_second(x: Any) -> Any:
    """(B, T, N, C) as (T, B * N, C)."""
    size, time, n, classes = x._array.shape
    return reshaped(ops.permute(x, dims=(1, 0, 2, 3)), (time, size * n, classes))


@rule_for("dropout")
def _dropout(b: Batch) -> Any:
    """Examples draw one after the other, or all keep what the first keeps; those of a vmap around this one may differ all the same."""
    if b.level.randomness != "same":
        return b.run(b.values[0])
    ones = ops.full(shape=b.shape(0), value=1, dtype=b.values[0]._array.dtype, device=b.values[0].device)
    return ops.mul(b.values[0], b.run(transform.current.spread(ones, b.level)))


rule_for("uniform_bins")(elementwise)


@rule_for("bin_numbers")
def _number_bins(b: Batch) -> Any:
    return loop_examples(b) if b.flags[1] else b.run(b.values[0], b.values[1])
