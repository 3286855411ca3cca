"""Class numbers as rows: embedding picks them from a table, one_hot writes them."""

from __future__ import annotations

from tritensor.dtypes import int64
from tritensor.errors import ArgumentError, DTypeError, ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import checked


@checked
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise ArgumentError("embedding: max_norm, scale_grad_by_freq and sparse are not supported; gradients are dense and unscaled")
    if padding_idx is not None and weight.shape:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise ArgumentError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
        padding_idx %= rows
    return ops.embedding(weight, input, padding_idx=padding_idx)


@checked
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 (..., num_classes), 1 at the class and 0 elsewhere; num_classes=-1 is one more than the largest class."""
    if tensor.dtype.kind not in ("int", "uint"):
        raise DTypeError(f"one_hot: tensor is {tensor.dtype.name}; class labels are integers, cast it with .long()")
    if tensor.numel() == 0 and num_classes <= 0:
        raise ShapeError("one_hot: an empty tensor needs num_classes")
    low, high = (int(tensor.min().item()), int(tensor.max().item())) if tensor.numel() else (0, -1)
    classes = high + 1 if num_classes == -1 else num_classes
    if low < 0 or high >= classes:
        raise ArgumentError(f"one_hot: labels run from {low} to {high}; they must be 0 to {classes - 1}")
    numbers = ops.arange(start=0, end=classes, step=1, dtype=tensor.array.dtype, device=tensor.device)
    return ops.cast(ops.eq(tensor.unsqueeze(-1), numbers), dtype=int64.numpy)
