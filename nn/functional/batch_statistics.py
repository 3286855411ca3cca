"""The steps of a batch normalisation whose batch is shared among processes, under the names of PyTorch's operators: statistics, their union, the
normalisation, and the same of its gradient."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.nn.functional.normalization import bessel_factor, update_running, update_running_pair
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function

Pair = tuple[Tensor, Tensor]


def _to_accumulator(x: Tensor) -> Tensor:
    """In the type that sums are kept in."""
    return x.to(dtypes.of(dtypes.accumulator(x._array.dtype)))  # 16-bit sums over a batch would lose all but their first digits


def _reduced_dims(name: str, input: Tensor) -> tuple[int, ...]:
    """All dims but that of the channels."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, ...)")
    return (0, *range(2, input.ndim))


def _spread_channels(v: Tensor, input: Tensor) -> Tensor:
    """One number for each channel beside the input."""
    return _to_accumulator(v).reshape(-1, *(1,) * (input.ndim - 2))


def _moments(name: str, input: Tensor) -> Pair:
    dims = _reduced_dims(name, input)
    x = _to_accumulator(input)
    return x.mean(dims), x.var(dims, correction=0)


@function(method=False)
@no_grad()
def batch_norm_stats(input: Tensor, eps: float) -> Pair:
    """(mean, 1 / sqrt(var + eps)) of each channel of (batch, channels, ...)."""
    mean, var = _moments("batch_norm_stats", input)
    return mean, (var + eps).rsqrt()


@function(method=False)
@no_grad()
def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float) -> Pair:
    """(mean, var) of each channel, towards which the running ones move by momentum, the variance with Bessel's correction."""
    mean, var = _moments("batch_norm_update_stats", input)
    update_running_pair(running_mean, running_var, mean, var, momentum, bessel_factor(input.numel() // max(input.shape[1], 1)))
    return mean, var


@function(method=False, out=True)
@no_grad()
def batch_norm_elemt(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float) -> Tensor:
    """(x - mean) invstd weight + bias for each channel; eps is in invstd already."""
    _reduced_dims("batch_norm_elemt", input)
    y = (_to_accumulator(input) - _spread_channels(mean, input)) * _spread_channels(invstd, input)
    y = y if weight is None else y * _spread_channels(weight, input)
    return (y if bias is None else y + _spread_channels(bias, input)).to(input.dtype)


@function(method=False)
@no_grad()
def batch_norm_gather_stats_with_counts(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float, eps: float,
    counts: Tensor,
) -> Pair:  # fmt: skip
    """(mean, 1 / sqrt(var + eps)) of several batches together, of theirs (batches, channels) and their numbers of elements (batches,); the running ones
    move towards them."""
    if not isinstance(input, Tensor):  # which says nothing that the statistics do not
        raise TypeError(f"batch_norm_gather_stats_with_counts: input is a {type(input).__name__}; give a tensor (tritensor.tensor(...))")
    n = _to_accumulator(counts.to(mean.dtype)).reshape(-1, 1)
    total = n.sum()
    both = (mean * n).sum(0) / total
    # each batch's own variance, and its mean's distance from the common one (Chan et al. 1983)
    var = ((invstd**-2 - eps + (mean - both) ** 2) * n).sum(0) / total
    update_running(running_mean, both, momentum)
    update_running(running_var, var, momentum, bessel_factor(int(total.item())))
    return both, (var + eps).rsqrt()


@function(method=False)
def batch_norm_gather_stats(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float, eps: float,
    count: int,
) -> Pair:  # fmt: skip
    """batch_norm_gather_stats_with_counts of batches of `count` elements each."""
    counts = mean.new_full((mean.shape[0],), float(count))
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)  # type: ignore[no-any-return]


@function(method=False)
@no_grad()
def batch_norm_backward_reduce(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Any, Any, Any, Any]:
    """(sum g, sum g (x - mean), gradient of weight, gradient of bias) of each channel; None for what is not asked for."""
    dims = _reduced_dims("batch_norm_backward_reduce", input)
    g = _to_accumulator(grad_out)
    sums, products = g.sum(dims), (g * (_to_accumulator(input) - _spread_channels(mean, input))).sum(dims)
    kind = sums.dtype if weight is None else weight.dtype  # gradients are of their parameter's type
    dw = ops.mul(products, invstd).to(kind) if weight_g else None
    return sums if input_g else None, products if input_g else None, dw, sums.to(kind) if bias_g else None


@function(method=False)
@no_grad()
def batch_norm_backward_elemt(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, sum_dy: Tensor, sum_dy_xmu: Tensor, count: Tensor
) -> Tensor:
    """The gradient of the input, of the sums of batch_norm_backward_reduce over all batches and the numbers of their elements."""
    _reduced_dims("batch_norm_backward_elemt", input)
    n, r = ops.cast(count.sum(), dtype=sum_dy._array.dtype), _spread_channels(invstd, input)
    away = (
        _to_accumulator(grad_out)
        - _spread_channels(sum_dy / n, input)
        - (_to_accumulator(input) - _spread_channels(mean, input)) * (r * r * _spread_channels(ops.div(sum_dy_xmu, n), input))
    )
    return (away * (r if weight is None else r * _spread_channels(weight, input))).to(input.dtype)
