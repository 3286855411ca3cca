"""Normalisation with what stands before it or behind it in nets, in one pass: residual streams, activations. PyTorch has each as several functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritensor.autograd.saved import pack_at_end
from tritensor.ground import dtypes
from tritensor.nn.functional.normalization import (
    check_normalized_shape,
    refuse_batch,
    refuse_eps,
    refuse_groups,
    refuse_single,
    refuse_single_group,
    refuse_types,
    update_running_by_batch,
)
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked


@checked
def add_layer_norm(
    input: Tensor, residual: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`(layer_norm(total, normalized_shape, weight, bias, eps), total)` with `total = input + residual`, in one pass; so is its gradient.

    input and residual of one shape and floating type; weight and bias of normalized_shape. PyTorch has it as two functions. What a transformer's
    layer does with its residual stream x: `h, x = F.add_layer_norm(attended, x, (width,), weight, bias)`. Raises ShapeError, DTypeError.

    >>> h, x = F.add_layer_norm(tt.tensor([1.0, 2.0]), tt.tensor([0.0, 1.0]), 2)
    >>> x
    tensor([1., 3.])
    """
    refuse_types("add_layer_norm", input, weight=weight, bias=bias)
    axes = len(check_normalized_shape("add_layer_norm", input, normalized_shape))
    return ops.add_layer_norm(input, residual, weight, bias, eps=float(eps), axes=axes)  # type: ignore[no-any-return]


@checked
def add_rms_norm(
    input: Tensor, residual: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """`(rms_norm(total, normalized_shape, weight, eps), total)` with `total = input + residual`, in one pass: see add_layer_norm. eps None: the type's own."""
    refuse_types("add_rms_norm", input, weight=weight)
    axes = len(check_normalized_shape("add_rms_norm", input, normalized_shape))
    # of the type that is computed in: float32's beside 16 bits
    small = float(np.finfo(dtypes.accumulator(input._array.dtype)).eps) if eps is None else float(eps)
    return ops.add_rms_norm(input, residual, weight, eps=small, axes=axes)  # type: ignore[no-any-return]


@checked
def batch_norm_activation(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor, bias: Tensor, residual: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5, *, activation: str = "relu",
) -> Tensor:  # fmt: skip
    """`activation(batch_norm(input, ...) + residual)` without what is between them in memory; its gradient takes it from input again.

    input (batch, channels, ...), residual of its shape and type; weight, bias and statistics (channels,), float32 beside 16 bits or input's type.
    activation: "relu", "gelu", "gelu_tanh" (`gelu(approximate="tanh")`) or "silu". The rest as batch_norm has it. nn.Sequential takes it on a GPU
    for a batch normalisation with its activation, the ResNets of `models` for a residual as well. Raises ShapeError, DTypeError, and ArgumentError
    for another activation, an eps that is not positive, and running statistics that are missing.

    >>> x, ones, zeros = tt.tensor([[1.0], [-1.0]]), tt.ones(1), tt.zeros(1)
    >>> F.batch_norm_activation(x, None, None, ones, zeros, residual=tt.tensor([[0.0], [2.0]]), training=True, eps=1e-9)
    tensor([[1.],
            [1.]])
    """
    name = "batch_norm_activation"
    if training:
        refuse_single(name, input.shape)
    refuse_eps(name, training, eps)
    refuse_batch(name, input, training, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    if not training:
        # buffers that somebody made trainable get no gradient here, as in batch_norm
        given = running_mean.detach(), running_var.detach()  # type: ignore[union-attr]
        return ops.batch_norm_by_activation(input, *given, weight, bias, residual, activation=activation, eps=float(eps))  # type: ignore[no-any-return]
    with pack_at_end():
        y, mean, var = ops.batch_norm_activation(input, weight, bias, residual, activation=activation, eps=float(eps))
        update_running_by_batch(input, running_mean, running_var, mean, var, momentum)
    return y  # type: ignore[no-any-return]


@checked
def group_norm_activation(
    input: Tensor, num_groups: int, weight: Tensor, bias: Tensor, eps: float = 1e-5, *, activation: str = "silu"
) -> Tensor:
    """`activation(group_norm(input, num_groups, weight, bias, eps))` without what is between them in memory; its gradient takes it from input again.

    input (batch, channels, ...), weight and bias (channels,), float32 beside 16 bits or input's type. activation: "relu", "gelu", "gelu_tanh" or
    "silu". Raises ShapeError, DTypeError, and ArgumentError for another activation.

    >>> x = tt.tensor([[1.0, -1.0, 5.0, 3.0]])
    >>> F.group_norm_activation(x, 2, tt.ones(4), tt.zeros(4), activation="relu")
    tensor([[1.0000, 0.0000, 1.0000, 0.0000]])
    """
    refuse_single_group("group_norm_activation", input, num_groups)
    refuse_groups("group_norm_activation", input, num_groups, weight=weight, bias=bias)
    return ops.group_norm_activation(input, weight, bias, groups=num_groups, activation=activation, eps=float(eps))  # type: ignore[no-any-return]
