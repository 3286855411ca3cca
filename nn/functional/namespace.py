"""What PyTorch publishes as `torch.<name>` of these functions: the same ones, or with the argument order that they have there."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor import dtypes
from tritensor.errors import ArgumentError, DTypeError, ShapeError
from tritensor.nn.functional.adaptive import adaptive_avg_pool1d, adaptive_max_pool1d_with_indices
from tritensor.nn.functional.convolution import conv2d
from tritensor.nn.functional.losses import binary_cross_entropy_with_logits as with_logits
from tritensor.nn.functional.normalization import layer_norm as normalized
from tritensor.nn.functional.pooling import max_pool2d as largest
from tritensor.nn.functional.products import bilinear
from tritensor.nn.functional.sparse import embedding as rows
from tritensor.table import ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import function, public

public.update({f.__name__: f for f in (conv2d, bilinear, adaptive_avg_pool1d)})

REDUCTIONS = ("none", "mean", "sum")


@function(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """nn.functional.adaptive_max_pool1d with its indices, always: (maxima, places)."""
    return adaptive_max_pool1d_with_indices(input, output_size)  # type: ignore[no-any-return]


@function(method=False)
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.max_pool2d without its indices."""
    return largest(input, kernel_size, stride, padding, dilation, ceil_mode)  # type: ignore[no-any-return]


@function(method=False)
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """nn.functional.layer_norm; cudnn_enable changes nothing."""
    if isinstance(normalized_shape, int):
        raise TypeError(f"layer_norm: normalized_shape is the int {normalized_shape}; give a tuple, ({normalized_shape},)")
    return normalized(input, normalized_shape, weight, bias, eps)  # type: ignore[no-any-return]


@function(method=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """nn.functional.binary_cross_entropy_with_logits, the reduction as a number: 0 none, 1 the mean, 2 the sum. 0
    unless it is given, as it comes out in PyTorch, whose stub file says 1."""
    if isinstance(reduction, bool) or not isinstance(reduction, int):
        raise TypeError(
            f"binary_cross_entropy_with_logits: reduction is {reduction!r}; give 0 (none), 1 (mean) or 2 (sum), "
            "or call nn.functional.binary_cross_entropy_with_logits, which takes words"
        )
    if reduction not in (0, 1, 2):
        raise ArgumentError(f"binary_cross_entropy_with_logits: reduction is {reduction}; give 0 (none), 1 (mean) or 2 (sum)")
    return with_logits(input, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos_weight)  # type: ignore[no-any-return]


@function(method=False, also={"input": "weight"})
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by integers: nn.functional.embedding with the table first. Row padding_idx gets no gradient, a
    padding_idx that is no row stands for none."""
    given = isinstance(weight, Tensor) and weight.ndim and 0 <= padding_idx < weight.shape[0]
    return rows(  # type: ignore[no-any-return]
        indices, weight, padding_idx if given else None, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


@function(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale those rows of input (rows, features) that the indices name and whose norm_type-norm is above max_norm to that norm, in place."""
    if input.ndim != 2:
        raise ShapeError(f"embedding_renorm_: input {tuple(input.shape)} has {input.ndim} dimensions; give (rows, features)")
    if indices.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"embedding_renorm_: indices is {indices.dtype.name}; row numbers are int32 or int64, cast it with .long()")
    named = ops.index_put(
        ops.full(shape=(input.shape[0],), value=False, dtype=dtypes.bool_.numpy, device=input.device),
        ops.full(shape=(indices.array.size,), value=True, dtype=dtypes.bool_.numpy, device=input.device),
        ops.reshape(indices, shape=(indices.array.size,)), dims=(0,), front=False, accumulate=False,
    )  # fmt: skip
    length = input.norm(norm_type, 1, keepdim=True)
    above = ops.logical_and(named.unsqueeze(1), ops.gt(length, max_norm))
    return overwrite(input, ops.where(above, input * (max_norm / (length + 1e-7)), input), "embedding_renorm_")
