"""Neural network functions with PyTorch's names and arguments; every one runs through the op table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from operator import index as as_index
from typing import Any

from tritensor.dtypes import as_dtype, int64
from tritensor.errors import ArgumentError, DTypeError, ShapeError
from tritensor.nn.padding import pad
from tritensor.nn.reduction import named, reduced
from tritensor.table import normal_dim, ops
from tritensor.tensor.aliasing.inplace import overwrite, write_out
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import dropout as _dropout
from tritensor.tensor.functions.reductions.distances import pdist as pdist
from tritensor.tensor.functions.shaping.reshaping import no_view
from tritensor.tensor.publishing.arguments import told
from tritensor.tensor.publishing.publish import checked


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""
    try:
        if isinstance(weight, Tensor) and weight.array.ndim == 1:
            return _one_output(input, weight, bias)
        return ops.linear(input, weight, bias)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        raise told(linear, (input, weight, bias), error) from None


def _one_output(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = ops.matmul(input, weight)
    if bias is None:
        return y
    if bias.ndim:
        raise ShapeError(f"linear: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: a weight of one output takes a bias of shape ()")
    return ops.add(y, bias)


@checked
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""
    left = ops.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight)  # (..., out, 1, m)
    y = ops.matmul(left, input2.unsqueeze(-1).unsqueeze(-3)).squeeze(-1).squeeze(-1)  # (..., out)
    return y if bias is None else ops.add(y, bias)


# images
def pair(name: str, what: str, value: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) from one number or two."""
    if isinstance(value, int):
        return value, value
    found = tuple(value)
    if len(found) == 1:
        found *= 2
    if len(found) != 2 or not all(isinstance(v, int) for v in found):
        raise ShapeError(f"{name}: {what} is {value!r}; give one integer, or two for height and width")
    return found


def _stride(name: str, stride: int | Sequence[int] | None, kernel: tuple[int, int]) -> tuple[int, int]:
    """The steps of a pooling's windows: None or an empty sequence lays them side by side."""
    return kernel if stride is None or (not isinstance(stride, int) and len(stride) == 0) else pair(name, "stride", stride)


def _batched(name: str, input: Tensor) -> tuple[Tensor, bool]:
    """The input as (batch, channels, height, width), and whether it came without a batch."""
    n = input.ndim
    if n not in (3, 4):
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} has {n} dimensions; give (batch, channels, height, width) or (channels, height, width)"
        )
    return (input, False) if n == 4 else (input.unsqueeze(0), True)


@checked
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w').

    `padding` is a size, a pair, "valid" (none) or "same" (the output is as large as the input; stride 1 only). An input (in, h, w) is a batch of one.
    """
    x, single = _batched("conv2d", input)
    strides, dilations = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    if isinstance(padding, str):
        x, pads = _named_padding(x, weight, padding, strides, dilations)
    else:
        pads = pair("conv2d", "padding", padding)
    y = ops.conv2d(x, weight, bias, stride=strides, padding=pads, dilation=dilations, groups=groups)
    return y.squeeze(0) if single else y


def _named_padding(
    x: Tensor, weight: Tensor, padding: str, stride: tuple[int, int], dilation: tuple[int, int]
) -> tuple[Tensor, tuple[int, int]]:
    if padding == "valid":
        return x, (0, 0)
    if padding != "same":
        raise ArgumentError(f"conv2d: padding {padding!r} is not known; give 'same', 'valid', an integer or a pair")
    if stride != (1, 1):
        raise ArgumentError(f"conv2d: padding='same' is not supported for strided convolutions; stride is {stride}")
    rows, columns = (d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True))
    if rows % 2 or columns % 2:  # an even kernel wants one more at the bottom or right
        x = pad(x, (0, columns % 2, 0, rows % 2))
    return x, (rows // 2, columns // 2)


@checked
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""
    x, single = _batched("max_pool2d", input)
    kernel = pair("max_pool2d", "kernel_size", kernel_size)
    y, indices = ops.max_pool2d(
        x, kernel_size=kernel, stride=_stride("max_pool2d", stride, kernel),
        padding=pair("max_pool2d", "padding", padding), dilation=pair("max_pool2d", "dilation", dilation), ceil_mode=ceil_mode,
    )  # fmt: skip
    if single:
        y, indices = no_view(y.squeeze(0)), no_view(indices.squeeze(0))
    return (y, indices) if return_indices else y


@checked
def avg_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""
    x, single = _batched("avg_pool2d", input)
    kernel = pair("avg_pool2d", "kernel_size", kernel_size)
    if divisor_override == 0:
        raise ArgumentError("avg_pool2d: divisor_override is 0; give the number that each window's sum is divided by, or None")
    y = ops.avg_pool2d(
        x, kernel_size=kernel, stride=_stride("avg_pool2d", stride, kernel),
        padding=pair("avg_pool2d", "padding", padding), ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )  # fmt: skip
    return no_view(y.squeeze(0)) if single else y


# activations
def _written(input: Tensor, y: Tensor, inplace: bool, name: str) -> Tensor:
    return overwrite(input, y, name) if inplace else y


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    try:
        return _written(input, ops.relu(input), True, "relu_") if inplace else ops.relu(input)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        raise told(relu, (input, inplace), error) from None


@checked
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""
    x = input.clone() if inplace else input  # its gradient needs the input as it was
    return _written(input, ops.leaky_relu(x, negative_slope=float(negative_slope)), inplace, "leaky_relu_")


@checked
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""
    return _written(input, ops.elu(input.clone() if inplace else input, alpha=float(alpha)), inplace, "elu_")


@checked
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself where beta x is above `threshold`."""
    return ops.softplus(input, beta=float(beta), threshold=float(threshold))


@checked
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is {approximate!r}; it is 'none' or 'tanh'")
    return ops.gelu(input, approximate=approximate)


@checked
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _written(input, ops.silu(input.clone() if inplace else input), inplace, "silu_")


@checked
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


@checked
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return ops.tanh(input)


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"{name}: dim was not given; it is taken from the number of dimensions as in PyTorch; pass dim=", DeprecationWarning, stacklevel=3
    )
    return 0 if ndim in (0, 1, 3) else 1


@checked
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""
    y = _dropout(input, p, training)
    return _written(input, y, inplace and y is not input, "dropout_")


@checked
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim; the input is cast to dtype first where one is given."""
    x = input if dtype is None else input.to(as_dtype(dtype))
    return ops.softmax(x, dim=normal_dim("softmax", _implicit_dim("softmax", x.ndim) if dim is None else dim, x.ndim))


@checked
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along dim, computed stably."""
    x = input if dtype is None else input.to(as_dtype(dtype))
    return ops.log_softmax(x, dim=normal_dim("log_softmax", _implicit_dim("log_softmax", x.ndim) if dim is None else dim, x.ndim))


# normalisation and embedding
@checked
def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`; var without Bessel's correction."""
    over = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not over or tuple(input.shape[-len(over) :]) != over:
        raise ShapeError(f"layer_norm: normalized_shape {over} is not the end of input's shape {tuple(input.shape)}")
    return ops.layer_norm(input, weight, bias, eps=float(eps), axes=len(over))


@checked
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps) along dim; written into `out` where it is given."""
    length = input.norm(p, dim, keepdim=True)
    y = ops.div(input, ops.clamp(length, eps, None))
    return y if out is None else write_out(out, y, "normalize")


@checked
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise ArgumentError("embedding: max_norm, scale_grad_by_freq and sparse are not supported; gradients are dense and unscaled")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ArgumentError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
        padding_idx %= rows
    return ops.embedding(weight, input, padding_idx=padding_idx)


@checked
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 (..., num_classes), 1 at the class and 0 elsewhere; num_classes=-1 is one more than the largest class."""
    if tensor.dtype.kind not in ("int", "uint"):
        raise DTypeError(f"one_hot: tensor is {tensor.dtype.name}; class labels are integers")
    if tensor.numel() == 0 and num_classes <= 0:
        raise ShapeError("one_hot: an empty tensor needs num_classes")
    low, high = (int(tensor.min().item()), int(tensor.max().item())) if tensor.numel() else (0, -1)
    classes = high + 1 if num_classes == -1 else num_classes
    if low < 0 or high >= classes:
        raise ArgumentError(f"one_hot: labels run from {low} to {high}; they must be 0 to {classes - 1}")
    numbers = ops.arange(start=0, end=classes, step=1, dtype=tensor.array.dtype, device=tensor.device)
    return ops.cast(ops.eq(tensor.unsqueeze(-1), numbers), dtype=int64.numpy)


# losses
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
