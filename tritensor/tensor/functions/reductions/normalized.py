"""Normalization under the names of PyTorch's operators: with the statistics, as functions that other libraries call; and softmax's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, EmptyError, ShapeError
from tritensor.ground.strides import channels_last, is_channels_last
from tritensor.ops.array import element_strides
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.casting import to_accumulator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.reductions import cast_if_given, parse_dims
from tritensor.tensor.functions.shaping.reshaping import reshape_to, to_c_order
from tritensor.tensor.public_api.publish import function


def _find_moments(x: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and variance (without Bessel's correction) over dims, which stay with size 1."""
    mean = ops.mean(x, dim=dims, keepdim=True)
    mean = ops.add(mean, ops.mean(ops.sub(x, mean), dim=dims, keepdim=True))  # what the sum's roundings left: a constant varies by nothing
    centred = ops.sub(x, mean)
    return mean, ops.mean(ops.mul(centred, centred), dim=dims, keepdim=True)


def _inverse_deviation(variance: Tensor, eps: float) -> Tensor:
    return ops.rsqrt(ops.add(variance, float(eps)))


def _apply_affine(y: Tensor, weight: Tensor | None, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """y * weight + bias, both read in a shape that broadcasts."""
    y = y if weight is None else ops.mul(y, reshape_to(weight, shape))
    return y if bias is None else ops.add(y, reshape_to(bias, shape))


@function(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(layer_norm, mean, 1 / sqrt(var + eps)) over the trailing dimensions `normalized_shape`; the two statistics have no gradient."""
    over = tuple(normalized_shape)
    lead = input.ndim - len(over)
    if not over or tuple(input._array.shape[max(lead, 0) :]) != over:
        raise ShapeError(
            f"native_layer_norm: normalized_shape {over} is not the end of input's shape {tuple(input._array.shape)}; give its last sizes"
        )
    y = ops.layer_norm(input, weight, bias, eps=float(eps), axes=len(over))
    mean, variance = _find_moments(to_accumulator(input.detach()), tuple(range(lead, input.ndim)))
    return y, cast_if_given(mean, input.dtype), cast_if_given(_inverse_deviation(variance, eps), input.dtype)


@function(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(the input normalized within each of `group` groups of channels, mean, 1 / sqrt(var + eps)): input (N, C, ...), statistics (N, group).

    Raises ShapeError for sizes that are not input's, and for groups of unequal size.
    """
    shape = tuple(input._array.shape)
    if group < 1 or C % group or shape[:2] != (N, C) or input._array.size != N * C * HxW:
        raise ShapeError(f"native_group_norm: input {shape}, N {N}, C {C}, HxW {HxW}, group {group}; C must be a multiple of group")
    rows = reshape_to(to_accumulator(input), (N, group, C // group * HxW))
    mean, variance = _find_moments(rows, (2,))
    rstd = _inverse_deviation(variance, eps)
    y = reshape_to(ops.mul(ops.sub(rows, mean), rstd), shape)
    y = _apply_affine(y, weight, bias, (1, C) + (1,) * (len(shape) - 2))
    return tuple(cast_if_given(v, input.dtype) for v in (y, reshape_to(mean, (N, group)), reshape_to(rstd, (N, group))))  # type: ignore[return-value]


@function(method=False, out=True)
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool, momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(the input normalized by channel, mean, 1 / sqrt(var + eps)): input (batch, channels, ...), statistics (channels,), without a gradient.

    In training the batch's own statistics serve, and the running ones, where they are given, move towards them in place by `momentum` (the
    variance with Bessel's correction); else the running ones serve and the two results are empty. Raises ShapeError where those are missing then.
    """
    shape = tuple(input._array.shape)
    if len(shape) < 2:
        raise ShapeError(f"native_batch_norm: input {shape}; it must be (batch, channels, ...)")
    if not training and (running_mean is None or running_var is None):
        raise ShapeError("native_batch_norm: without training, running_mean and running_var must be given")
    kept = (1, shape[1]) + (1,) * (len(shape) - 2)
    x = to_accumulator(input)
    if training:
        mean, variance = _find_moments(x, tuple(d for d in range(len(shape)) if d != 1))
        _update_running(running_mean, mean, momentum)
        count = input._array.size // max(shape[1], 1)
        _update_running(running_var, variance, momentum, count / (count - 1) if count > 1 else float("inf") if count else 1.0)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, variance = reshape_to(to_accumulator(running_mean), kept), reshape_to(to_accumulator(running_var), kept)
    rstd = _inverse_deviation(variance, eps)
    y = _apply_affine(ops.mul(ops.sub(x, mean), rstd), weight, bias, kept)
    saved = [reshape_to(v.detach(), (shape[1],)) for v in (mean, rstd)] if training else [_make_empty(x), _make_empty(x)]
    # Layout of the result as PyTorch's: channels_last stays, all else is C order.
    images = len(shape) == 4 and is_channels_last(shape, element_strides(input._array))
    y = ops.copy(y, memory_format=channels_last) if images else to_c_order(y)
    return cast_if_given(y, input.dtype), saved[0], saved[1]


def _make_empty(x: Tensor) -> Tensor:
    return ops.full(shape=(0,), value=0, dtype=x._array.dtype, device=x.device)


def _update_running(running: Tensor | None, batch: Tensor, momentum: float, factor: float = 1.0) -> None:
    """running += momentum (factor batch - running), in place."""
    if running is not None:
        with no_grad():
            now = ops.mul(reshape_to(batch.detach(), tuple(running._array.shape)), factor * momentum)
            running.mul_(1 - momentum).add_(cast_if_given(now, running.dtype))


@function(method=False)
def _native_batch_norm_legit(input: Tensor, weight: Any, bias: Any, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """native_batch_norm; also (input, weight, bias, training, momentum, eps), without running statistics."""
    # PyTorch's overload without statistics, recognised by the number of arguments.
    if len(args) == 3:
        args = (None, None, *args)
    return native_batch_norm(input, weight, bias, *args)


@function(method=False)
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax by its input, y (g - sum g y) along dim, of its result y = output; in `input_dtype`."""
    grad_output, output = to_accumulator(grad_output), to_accumulator(output)
    product = ops.mul(grad_output, output)
    total = ops.sum(product, dim=(normal_dim("_softmax_backward_data", dim, output.ndim),) if output.ndim else (), keepdim=True)
    return cast_if_given(to_c_order(ops.sub(product, ops.mul(output, total))), input_dtype)


@function(method=False)
def _safe_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """softmax along dim, 0 where a whole row is -inf; `dtype`: cast x first."""
    x = cast_if_given(x, dtype)
    place = normal_dim("_safe_softmax", dim, x.ndim)
    nothing = ops.all(ops.eq(x.detach(), -float("inf")), dim=(place,) if x.ndim else (), keepdim=True)
    return ops.where(nothing, 0.0, ops.softmax(ops.where(nothing, 0.0, x), dim=place))  # of zeros there, so that no gradient is NaN


@function(out=True)
def hash_tensor(x: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or over dims of the elements' 64 bits, as uint64: of integers' own value, of floats as float64. All dims unless given.

    Raises ShapeError for no elements without dim, ValueError for a mode other than 0.
    """
    if mode != 0:
        raise ArgumentError(f"hash_tensor: mode is {mode}; 0, the exclusive or, is the one there is")
    if isinstance(dim, tuple | list) and not dim and x._array.size == 0:
        raise ShapeError("hash_tensor: x has no elements; give the dim to reduce")
    dims = parse_dims("hash_tensor", x, dim)
    if 0 in [x._array.shape[d] for d in dims]:
        raise EmptyError(f"hash_tensor: x {tuple(x.shape)} has no element along dim {dims}; give a dim that has some")
    # Every type is hashed in a form of 64 bits.
    wide = cast_if_given(x.detach(), dtypes.float64 if x.is_floating_point() else dtypes.int64).contiguous()
    bits = ops.permute(wide.view(dtypes.int64), dims=(*[d for d in range(x.ndim) if d not in dims], *dims))
    kept = tuple([n for d, n in enumerate(x._array.shape) if d not in dims])
    width = int(np.prod([x._array.shape[d] for d in dims], dtype=np.int64))
    rows = reshape_to(bits, (*kept, width))
    rows = _reduce_by_xor(rows)
    shape = tuple([1 if d in dims else n for d, n in enumerate(x._array.shape)]) if keepdim else kept
    return reshape_to(rows, shape).contiguous().view(dtypes.uint64)


def _reduce_by_xor(rows: Tensor) -> Tensor:
    """(..., n) -> (..., 1): halves upon each other by exclusive or; an odd one out stays for the next round."""
    while (n := rows._array.shape[-1]) > 1:
        half = n // 2
        low = ops.bitwise_xor(rows[..., :half], rows[..., half : 2 * half])
        rows = ops.cat(low, rows[..., 2 * half :], dim=low.ndim - 1) if n % 2 else low
    return rows
