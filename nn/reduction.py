"""Reduction of a loss over many elements to one number: `reduction=`, and the two flags that older code gives instead."""

from __future__ import annotations

import warnings

from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def reduction_name(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction meant by all three: the flags, which PyTorch has long deprecated, win where one is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        meant = "none"
    else:
        meant = "mean" if size_average is None or size_average else "sum"
    warnings.warn(f"size_average and reduce are deprecated; give reduction={meant!r} instead", stacklevel=3)
    return meant


def reduce_loss(name: str, loss: Tensor, reduction: str, weight: Tensor | None = None) -> Tensor:
    """A loss reduced: "none", "sum", or "mean", which divides by the weights' sum where there are weights."""
    if reduction == "mean" and weight is not None:
        return ops.div(reduce_loss(name, loss, "sum"), reduce_loss(name, weight, "sum"))
    if reduction == "mean":
        return ops.mean(loss, dim=tuple(range(loss.ndim)), keepdim=False)
    if reduction == "sum":
        return ops.sum(loss, dim=tuple(range(loss.ndim)), keepdim=False)
    if reduction != "none":
        raise ValueError(f"{name}: reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")
    return loss
