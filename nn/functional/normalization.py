"""Normalization: of batches, instances, groups and layers, of neighbouring channels, and of vectors to length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.autograd.node import version_of
from tritensor.autograd.saved import borrow_saved, copy_for_borrowers, pack_at_end
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, IndexShapeError, ShapeError
from tritensor.ground.thread_state import here
from tritensor.nn.functional.window_arguments import copy_channels_last
from tritensor.ops.array import CudaArray
from tritensor.ops.lazy_array import waiting
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import overwrite, write_out
from tritensor.tensor.aliasing.views import is_write_recorded
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.images import constant_pad_nd
from tritensor.tensor.public_api.publish import checked

HALVES = (dtypes.float16, dtypes.bfloat16)


def check_normalized_shape(name: str, input: Tensor, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """The sizes over which a layer is normalised: the last ones of input."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or tuple(input.shape[-len(sizes) :]) != sizes:
        raise ShapeError(f"{name}: normalized_shape {sizes} is not the end of input's shape {tuple(input.shape)}; give its last sizes")
    return sizes


@checked
def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`; var without Bessel's correction."""
    # the usual call, all of one type, is not slowed by the refusals' loops
    if (weight is not None and weight.dtype is not input.dtype) or (bias is not None and bias.dtype is not input.dtype):
        refuse_types("layer_norm", input, weight=weight, bias=bias)
    return ops.layer_norm(input, weight, bias, eps=float(eps), axes=len(check_normalized_shape("layer_norm", input, normalized_shape)))


def refuse_types(name: str, input: Tensor, **vectors: Tensor | None) -> None:
    """Raise DTypeError for an integer input, and for parameters of a type that does not go with it: its own, or float32 beside 16 bits."""
    if not input.dtype.is_floating_point:
        raise DTypeError(f"{name}: input is {input.dtype.name}; {name} takes floating types; cast it with .float()")
    for label, v in vectors.items():
        if v is not None and v.dtype is not input.dtype and not (input.dtype in HALVES and v.dtype is dtypes.float32):
            raise DTypeError(f"{name}: input is {input.dtype.name}, {label} {v.dtype.name}; cast one so that both are the same")


def refuse_channels(name: str, input: Tensor, **vectors: Tensor | None) -> None:
    """Raise ShapeError where a vector has not one number for each channel."""
    for label, v in vectors.items():
        if v is not None and tuple(v.shape) != (input.shape[1],):
            raise ShapeError(
                f"{name}: {label} should contain {input.shape[1]} elements not {v.numel()}: input {tuple(input.shape)} has "
                f"{input.shape[1]} channels, {label} is {tuple(v.shape)}; give it the shape ({input.shape[1]},)"
            )


def refuse_single(name: str, shape: Sequence[int]) -> None:
    """Raise ShapeError where a channel has one value alone, which has no variance."""
    if shape[0] * math.prod(shape[2:]) == 1:
        raise ShapeError(
            f"{name}: expected more than 1 value per channel when training, got input size {tuple(shape)}; give a larger batch, or call .eval()"
        )


def _is_plain_array(x: Tensor) -> bool:
    """Whether x is float32, float64 or int64 in host memory that can be written as it lies: nothing but its version has to know."""
    a = x._array
    if here.segment is not None or waiting:
        return False
    return type(a) is np.ndarray and a.dtype.char in "fdl" and a.flags.writeable and a.flags.c_contiguous and not is_write_recorded(x)


def add_one(batches: Tensor) -> None:
    """batches + 1, in place."""
    # counted in every training step: numpy's += skips an op's dispatch and its node
    if _is_plain_array(batches):
        copy_for_borrowers(batches)
        batches._array.__iadd__(1)
        version_of(batches).bump("add_")
    else:
        batches.add_(1)


def update_running(running: Tensor | None, statistic: Tensor, momentum: float, factor: float = 1.0) -> None:
    """running (1 - momentum) + statistic factor momentum, in place."""
    if running is None:
        return
    # a vector of some channels: dispatching two ops would take longer than their arithmetic
    if (
        _is_plain_array(running)
        and type(b := statistic._array) is np.ndarray
        and (a := running._array).dtype == b.dtype
        and a.shape == b.shape
    ):
        copy_for_borrowers(running)
        # a batch of infinities makes them NaN without a warning, as in PyTorch
        with np.errstate(all="ignore"):
            a *= 1 - momentum
            a += b * (momentum * factor)
        version_of(running).bump("batch_norm")
    else:
        with no_grad():
            moved = ops.add(ops.mul(running, 1 - momentum), ops.mul(statistic.detach().to(running.dtype), momentum * factor))
            overwrite(running, moved, "batch_norm")


def update_running_pair(
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, var: Tensor, momentum: float, correction: float
) -> None:
    """Both running statistics become (1 - momentum) running + momentum new, in place, the variance's new one times the correction."""
    # on a GPU both statistics follow in one launch
    if running_mean is None or running_var is None or type(running_mean._array) is not CudaArray:
        update_running(running_mean, mean, momentum)
        update_running(running_var, var, momentum, correction)
    else:
        with no_grad():
            ops.follow_statistics(running_mean, running_var, mean.detach(), var.detach(), momentum=momentum, correction=correction)


def bessel_factor(n: int) -> float:
    """What makes the variance of n numbers that of the population they come from."""
    return n / (n - 1) if n != 1 else math.inf


def training_batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(result, means, variances) by the statistics of the batch, which the running ones follow."""
    # a pack hook may end the run (a checkpoint's second one): the running statistics are written before, as in PyTorch
    with pack_at_end():
        y, mean, var = ops.batch_norm(input, weight, bias, eps=float(eps))
        update_running_by_batch(input, running_mean, running_var, mean, var, momentum)
    return y, mean, var


def update_running_by_batch(input: Tensor, running_mean: Any, running_var: Any, mean: Tensor, var: Tensor, momentum: float) -> None:
    """Have the running statistics follow those of a batch."""
    update_running_pair(running_mean, running_var, mean, var, momentum, bessel_factor(input.shape[0] * math.prod(input.shape[2:])))


def refuse_batch(name: str, input: Tensor, training: bool, **vectors: Tensor | None) -> None:
    """Raise for an input without channels, parameters and statistics that do not go with it, and statistics that are missing."""
    if input.ndim < 2 and input.numel():
        raise IndexShapeError(f"{name}: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, ...)")
    refuse_types(name, input, **vectors)
    if input.ndim > 1:
        refuse_channels(name, input, **vectors)
    if not training and (vectors["running_mean"] is None or vectors["running_var"] is None):
        missing = "running_mean" if vectors["running_mean"] is None else "running_var"
        raise ArgumentError(f"{name}: expected {missing} to be defined when training=False; give it, or training=True")


def plain_batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,
    name: str = "batch_norm",
) -> Tensor:  # fmt: skip
    """As torch.batch_norm has it: a channel of one value is let through."""
    refuse_batch(name, input, training, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    if not input.numel():
        # an empty result that stays in the graph, so that weight and bias get zeros as gradients
        y = input.clone() if weight is None else input * weight.sum()
        return y if bias is None else y + bias.sum()
    if training:
        return training_batch_norm(input, weight, bias, running_mean, running_var, momentum, eps)[0]
    return ops.batch_norm_by(input, running_mean.detach(), running_var.detach(), weight, bias, eps=float(eps))


def refuse_eps(name: str, training: bool, eps: float) -> None:
    """Raise ArgumentError for what would divide by 0, or by nothing that is a number."""
    if eps < 0 or (training and eps == 0):
        raise ArgumentError(f"{name}: batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")


@checked
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1).

    In training with the mean and the variance (of n) of its elements in the batch; running_mean and running_var, where given, then become
    (1 - momentum) running + momentum new, with the variance of n - 1. Otherwise with the running ones (Ioffe and Szegedy 2015).
    """
    if training:
        refuse_single("batch_norm", input.shape)
    refuse_eps("batch_norm", training, eps)
    return plain_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def plain_instance_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float, eps: float
) -> Tensor:
    """As torch.instance_norm has it: an instance of one value is let through."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise ArgumentError("instance_norm: expected running_mean and running_var to be defined when use_input_stats=False; give both")
    if (running_mean is None) != (running_var is None):
        raise ArgumentError("instance_norm: of running_mean and running_var one is None; give both, or neither")
    if input.ndim < 3:
        raise ShapeError(f"instance_norm: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, ...), 3 or more")
    vectors = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    refuse_types("instance_norm", input, **vectors)
    refuse_channels("instance_norm", input, **vectors)
    input = input.contiguous()  # PyTorch's result is in C order
    if not use_input_stats:
        return plain_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, "instance_norm")
    if not input.numel():  # no instance has a mean; what there is to scale and shift is nothing, and the gradients of the vectors are zeros
        beside = (-1, *[1] * (input.ndim - 2))
        y = input if weight is None else input * weight.reshape(beside)
        return y.clone() if bias is None else y + bias.reshape(beside)
    if running_mean is None and running_var is None:
        return ops.group_norm(input, weight, bias, groups=input.shape[1], eps=float(eps))
    n, c = input.shape[:2]
    # each channel of each instance becomes a channel of one sample, so that one kernel gives all means and variances
    every = [None if v is None else v.repeat(n) for v in (weight, bias)]
    y, mean, var = ops.batch_norm(input.reshape(1, n * c, *input.shape[2:]), *every, eps=float(eps))
    means, variances = mean.reshape(n, c).mean(0), var.reshape(n, c).mean(0)
    update_running_pair(running_mean, running_var, means, variances, momentum, bessel_factor(math.prod(input.shape[2:])))
    return y.reshape(tuple(input.shape))


@checked
@borrow_saved
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """batch_norm of each channel of each instance by itself (Ulyanov et al. 2016); the running statistics follow the instances' mean."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ShapeError(
            f"instance_norm: expected more than 1 spatial element when training, got input size {tuple(input.shape)}; an instance of one "
            "element has no variance; give more, or use_input_stats=False"
        )
    return plain_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def refuse_groups(name: str, input: Tensor, num_groups: int, **vectors: Tensor | None) -> None:
    """Raise for an input without channels, groups that do not share them, and parameters of another type."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: expected at least 2 dimensions for input tensor but received {input.ndim}; give (batch, channels, ...)")
    if num_groups <= 0 or input.shape[1] % num_groups:
        raise ShapeError(
            f"{name}: expected number of channels in input to be divisible by num_groups, but got input of shape {tuple(input.shape)} and "
            f"num_groups={num_groups}; give a divisor of {input.shape[1]}"
        )
    refuse_types(name, input, **vectors)


def plain_group_norm(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """As torch.group_norm has it: a group of one value is let through."""
    refuse_groups("group_norm", input, num_groups, weight=weight, bias=bias)
    return ops.group_norm(input, weight, bias, groups=num_groups, eps=float(eps))


def refuse_single_group(name: str, input: Tensor, num_groups: int) -> None:
    """Raise ShapeError where a group has one value alone."""
    if input.ndim >= 2 and num_groups > 0:
        refuse_single(name, (input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]))


@checked
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and variance those of each of num_groups groups of channels (Wu and He 2018)."""
    refuse_single_group("group_norm", input, num_groups)
    return plain_group_norm(input, num_groups, weight, bias, eps)


@checked
def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions `normalized_shape` (Zhang and Sennrich 2019). eps None: the type's own."""
    axes = len(check_normalized_shape("rms_norm", input, normalized_shape))
    if input.dtype.is_complex:
        return _complex_rms_norm(input, axes, weight, eps)
    if not input.dtype.is_floating_point:
        raise DTypeError(f"rms_norm: input is {input.dtype.name}; rms_norm takes floating and complex types; cast it with .float()")
    if weight is not None and weight.dtype is not input.dtype and weight.dtype is not dtypes.float32:
        weight = weight.to(dtypes.of(dtypes.accumulator(input._array.dtype)))
    small = float(np.finfo(dtypes.accumulator(input._array.dtype)).eps) if eps is None else float(eps)
    y = ops.rms_norm(input, weight, eps=small, axes=axes)
    return copy_channels_last(input, y) if input.ndim in (4, 5) else y


def _complex_rms_norm(input: Tensor, axes: int, weight: Tensor | None, eps: float | None) -> Tensor:
    """The same formula on complex numbers, whose squares it takes and not their sizes'."""
    small = float(np.finfo(input._array.real.dtype).eps) if eps is None else eps
    y = input * ((input * input).mean(tuple(range(-axes, 0)), keepdim=True) + small).rsqrt()
    return y if weight is None else y * weight


def mean_of_neighbours(squares: Tensor, before: int, behind: int) -> Tensor:
    """For each channel (dimension 1) the mean over it, `before` channels before it and `behind` behind it; those that are not there are 0."""
    n, c = squares.shape[:2]
    padded = constant_pad_nd(squares.reshape(n, 1, c, -1), (0, 0, before, behind), 0)
    if not squares.dtype.is_floating_point:  # whole numbers are divided without a rest, as PyTorch's pooling does
        shifted = [padded[:, :, i : i + c] for i in range(before + behind + 1)]
        return (sum(shifted[1:], shifted[0]) // len(shifted)).reshape(tuple(squares.shape))  # type: ignore[no-any-return]
    window = (before + behind + 1, 1)
    mean = ops.avg_pool2d(
        padded, kernel_size=window, stride=(1, 1), padding=(0, 0), ceil_mode=False, count_include_pad=True, divisor_override=None
    )
    return mean.reshape(tuple(squares.shape))  # type: ignore[no-any-return]


@checked
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean(x^2))^beta, the mean over the `size` channels around each (Krizhevsky et al. 2012)."""
    if input.ndim < 3:
        raise ShapeError(
            f"local_response_norm: expected 3D or higher dimensionality input (got {input.ndim} dimensions); give (batch, channels, ...)"
        )
    if not input.numel():
        return input
    mean = mean_of_neighbours(input * input, size // 2, (size - 1) // 2)
    return ops.div(input, ops.pow(ops.add(ops.mul(mean, alpha), k), beta))


@checked
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps) along dim; written into `out` where it is given."""
    length = input.norm(p, dim, keepdim=True)
    y = ops.div(input, ops.clamp(length, eps, None))
    return y if out is None else write_out(out, y, "normalize")
