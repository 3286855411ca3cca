"""Batch normalisation by the statistics of all processes' batches: one message forward, one backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.function import Function, once_differentiable
from tritensor.distributed.collectives import all_gather_into_tensor, all_reduce
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import ShapeError
from tritensor.nn.functional.batch_statistics import batch_norm_backward_elemt, batch_norm_backward_reduce, batch_norm_elemt
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat


class SharedBatchNorm(Function):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, where mean and var are those of the batches of all processes of a group.

    forward(input, weight, bias, eps, group, follow) gives the output; `follow` is told (mean, var, number of elements a channel) before anything is
    saved for backward, so that the running statistics have them even where saving ends a checkpoint's second run.
    Batches are put together by the formula of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979). A process may have an empty batch.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: ProcessGroup, follow: Callable[[Tensor, Tensor, int], None]
    ) -> Tensor:  # fmt: skip
        channels = input.shape[1]
        n = input.numel() // channels
        # Sums over a batch in 16 bits would lose the small differences that a variance is made of.
        wide = input.double() if input.dtype.itemsize == 8 else input.float()
        dims = (0, *range(2, input.ndim))
        # The mean of nothing is NaN, which would reach all processes' sums though it counts 0 times.
        mean = wide.mean(dims) if n else wide.new_zeros(channels)
        squares = wide.var(dims, correction=0) * n if n else wide.new_zeros(channels)
        told = wide.new_empty(group.size(), 2 * channels + 1)
        all_gather_into_tensor(told, cat([mean, squares, wide.new_full((1,), float(n))]), group)
        counts = told[:, -1:]
        total = counts.sum()
        n = int(total.item())
        # The variance of one value is 0 whatever it is, and its normalised value always the bias.
        if n < 2:
            raise ShapeError(
                f"SyncBatchNorm: input {tuple(input.shape)}: Expected more than 1 value per channel when training, and the batches of all processes "
                f"together have {n}; give more examples, or call eval()"
            )
        means = told[:, :channels]
        mean = (means * counts).sum(0) / total
        var = (told[:, channels:-1].sum(0) + (counts * (means - mean) ** 2).sum(0)) / total
        scale = (var + eps).rsqrt()
        ctx.save_for_backward(input, weight, mean, scale, counts)
        ctx.group, ctx.has_bias = group, bias is not None
        follow(mean, var, n)
        return batch_norm_elemt(input, weight, bias, mean, scale, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        input, weight, mean, scale, counts = ctx.saved_tensors
        channels = input.shape[1]
        sums, products, of_weight, of_bias = batch_norm_backward_reduce(
            grad, input, mean, scale, weight, True, weight is not None, ctx.has_bias
        )
        both = cat([sums, products])
        all_reduce(both, group=ctx.group)
        of_input = batch_norm_backward_elemt(grad, input, mean, scale, weight, both[:channels], both[channels:], counts)
        return of_input, of_weight, of_bias, None, None, None
