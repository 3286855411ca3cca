"""Functions that PyTorch publishes as `torch.<name>`: those of nn.functional, some with another order of arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.autograd.modes import no_grad
from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.nn.functional import sparse as _sparse
from tritensor.nn.functional.convolution import conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d
from tritensor.nn.functional.losses import numeric_reduction as numeric_reduction
from tritensor.nn.functional.normalization import layer_norm as _layer_norm
from tritensor.nn.functional.normalization import plain_batch_norm, plain_group_norm, plain_instance_norm
from tritensor.nn.functional.normalization import rms_norm as _rms_norm
from tritensor.nn.functional.pooling.adaptive import adaptive_avg_pool1d, adaptive_max_pool1d_with_indices
from tritensor.nn.functional.pooling.windows import avg_pool1d
from tritensor.nn.functional.pooling.windows import max_pool1d as _max_pool1d
from tritensor.nn.functional.pooling.windows import max_pool1d_with_indices as _max_pool1d_with_indices
from tritensor.nn.functional.pooling.windows import max_pool2d as _max_pool2d
from tritensor.nn.functional.pooling.windows import max_pool3d as _max_pool3d
from tritensor.nn.functional.products import bilinear
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, public

_SAME = (
    conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d, bilinear, adaptive_avg_pool1d, avg_pool1d,
)  # fmt: skip
public.update({f.__name__: f for f in _SAME})


@function(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """nn.functional.adaptive_max_pool1d with its indices, always: (maxima, places)."""
    return adaptive_max_pool1d_with_indices(input, output_size)  # type: ignore[no-any-return]


@function(method=False)
def max_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.max_pool1d without its indices."""
    return _max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)  # type: ignore[no-any-return]


@function(method=False)
def max_pool1d_with_indices(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """nn.functional.max_pool1d with its indices, always: (maxima, places)."""
    return _max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)  # type: ignore[no-any-return]


@function(method=False)
def max_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.max_pool3d without its indices."""
    return _max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)  # type: ignore[no-any-return]


@function(method=False)
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.max_pool2d without its indices."""
    return _max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)  # type: ignore[no-any-return]


@function(method=False)
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """nn.functional.layer_norm; cudnn_enable changes nothing."""
    if isinstance(normalized_shape, int):
        raise TypeError(f"layer_norm: normalized_shape is the int {normalized_shape}; give a tuple, ({normalized_shape},)")
    return _layer_norm(input, normalized_shape, weight, bias, eps)  # type: ignore[no-any-return]


@function(method=False)
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """nn.functional.rms_norm."""
    if isinstance(normalized_shape, int):
        raise TypeError(f"rms_norm: normalized_shape is the int {normalized_shape}; give a tuple, ({normalized_shape},)")
    return _rms_norm(input, normalized_shape, weight, eps)  # type: ignore[no-any-return]


@function(method=False)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Tensor:
    """nn.functional.group_norm, also of groups of one value; cudnn_enabled changes nothing."""
    return plain_group_norm(input, num_groups, weight, bias, eps)


@function(method=False)
def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """nn.functional.batch_norm, also of channels of one value; cudnn_enabled changes nothing."""
    return plain_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@function(method=False)
@borrow_saved
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """nn.functional.instance_norm, also of instances of one value; cudnn_enabled changes nothing."""
    return plain_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@function(method=False, also={"input": "weight"})
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by integers: nn.functional.embedding with the table first. Row padding_idx gets no gradient, a
    padding_idx that is no row stands for none."""
    row = padding_idx if isinstance(weight, Tensor) and weight.ndim and 0 <= padding_idx < weight.shape[0] else None
    return _sparse.embedding(indices, weight, row, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)  # type: ignore[no-any-return]


@function(method=False)
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """nn.functional.embedding_bag with the table first and the mode as a number: 0 sum, 1 mean, 2 max.

    Returns (bags folded, to which bag each index belongs, sizes of the bags, for max which row gave each element). As in PyTorch the second is empty
    and the others zeros where a sum has no use for them.
    """
    if mode not in (0, 1, 2):
        raise ArgumentError(f"embedding_bag: mode is {mode!r}; give 0 (sum), 1 (mean) or 2 (max)")
    words = _sparse.MODES[mode]
    flat = indices.reshape(-1)
    y = _sparse.embedding_bag(
        flat, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=words, sparse=sparse, per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset, padding_idx=padding_idx,
    )  # fmt: skip
    edges = _sparse.bag_edges(flat, offsets, include_last_offset)
    bag, count = _sparse.bag_numbers(flat, edges), len(edges) - 1
    nothing = ops.full(shape=(count,), value=0, dtype=dtypes.int64.numpy, device=weight.device)
    if mode == 0:
        return y, bag[:0], nothing, nothing.clone()
    counted = ops.full(shape=flat._array.shape, value=True, dtype=dtypes.bool_.numpy, device=weight.device)
    if padding_idx is not None:
        counted = ops.ne(flat, padding_idx % weight.shape[0])
    sizes = nothing.index_add(0, bag, counted.long())
    if mode == 1:
        return y, bag, sizes, sizes.clone()
    with no_grad():
        row = ops.bag_tops(weight, flat, edges, padding_idx=None if padding_idx is None else padding_idx % weight.shape[0])
        return y, bag, sizes, ops.clamp(row, 0, None)
