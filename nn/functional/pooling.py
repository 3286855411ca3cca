"""Pooling: the maximum or the mean of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.errors import ArgumentError
from tritensor.nn.functional.windows import batched, pair, steps
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import no_view
from tritensor.tensor.publishing.publish import checked


@checked
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""
    x, single = batched("max_pool2d", input)
    kernel = pair("max_pool2d", "kernel_size", kernel_size)
    y, indices = ops.max_pool2d(
        x, kernel_size=kernel, stride=steps("max_pool2d", stride, kernel),
        padding=pair("max_pool2d", "padding", padding), dilation=pair("max_pool2d", "dilation", dilation), ceil_mode=ceil_mode,
    )  # fmt: skip
    if single:
        y, indices = no_view(y.squeeze(0)), no_view(indices.squeeze(0))
    return (y, indices) if return_indices else y


@checked
def max_pool2d_with_indices(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """max_pool2d with return_indices=True."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@checked
def avg_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""
    x, single = batched("avg_pool2d", input)
    kernel = pair("avg_pool2d", "kernel_size", kernel_size)
    if divisor_override == 0:
        raise ArgumentError("avg_pool2d: divisor_override is 0; give the number that each window's sum is divided by, or None")
    y = ops.avg_pool2d(
        x, kernel_size=kernel, stride=steps("avg_pool2d", stride, kernel),
        padding=pair("avg_pool2d", "padding", padding), ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )  # fmt: skip
    return no_view(y.squeeze(0)) if single else y
