"""Power-average pooling: the p-norm of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.nn.functional.pooling.windows import avg_pool1d, avg_pool2d, avg_pool3d
from tritensor.nn.functional.window_arguments import to_axes
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked

Sizes = int | Sequence[int]


def _pool_norms(
    average: Any, name: str, axes: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    """The mean of the powers, without a sign where that is negative, times the cells of a window, to the power of 1 / p."""
    kernel = to_axes(name, "kernel_size", kernel_size, axes)
    # x x^(p - 1): where x has no such power, of a negative one say, the gradient is NaN whatever the window's is, as in PyTorch
    powers = ops.mul(input, input.pow(norm_type - 1)) if norm_type > 1 else input.pow(norm_type)
    mean = average(powers, kernel, stride, 0, ceil_mode)
    positive = ops.mul(mean.sign(), ops.relu(mean.abs()))
    return positive.mul(math.prod(kernel)).pow(1.0 / norm_type)  # type: ignore[no-any-return]


@checked
def lp_pool1d(input: Tensor, norm_type: int | float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, w) -> (batch, c, w')."""
    return _pool_norms(avg_pool1d, "lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@checked
def lp_pool2d(input: Tensor, norm_type: int | float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, h, w) -> (batch, c, h', w')."""
    return _pool_norms(avg_pool2d, "lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@checked
def lp_pool3d(input: Tensor, norm_type: int | float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, d, h, w) -> (batch, c, d', h', w')."""
    return _pool_norms(avg_pool3d, "lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)
