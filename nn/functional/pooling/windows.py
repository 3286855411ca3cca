"""Pooling: the maximum, the mean or the p-norm of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.modes import is_grad_enabled
from tritensor.ground.errors import ArgumentError
from tritensor.nn.functional.padding import pad
from tritensor.nn.functional.window_arguments import Sizes, add_batch, to_axes, to_image_of_one_row, to_strides
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked


class _RowsSpec(NamedTuple):
    """What is asked of rows before they are taken for images of one row."""

    shape: tuple[int, ...]
    dtype: np.dtype


def _window_settings(
    name: str, axes: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> dict[str, tuple[int, ...]]:
    """The attributes that the ops of pooling share. Rows are images of one row, whose windows are refused here, before they are."""
    kernel = to_axes(name, "kernel_size", kernel_size, axes)
    found = {
        "kernel_size": kernel, "stride": to_strides(name, stride, kernel), "padding": to_axes(name, "padding", padding, axes),
        "dilation": to_axes(name, "dilation", dilation, axes),
    }  # fmt: skip
    if axes == 1:
        from tritensor.kernels.pooling.windows import check_windows  # with the first call: it loads Triton

        rows = _RowsSpec((*x.shape[:2], x.shape[3]), x._array.dtype)
        check_windows(name, 1, rows, kernel, found["stride"], found["padding"], found["dilation"], ceil_mode, ("float", "int", "uint"))
        return {what: (0 if what == "padding" else 1, *values) for what, values in found.items()}
    return found


def _to_image(name: str, axes: int, input: Tensor, last: bool = True) -> tuple[Tensor, bool]:
    """The input with a batch, rows as images of one row, and whether it came without a batch. `last`: rows may have their channels last."""
    x, single = add_batch(name, input, axes)
    return (x if axes != 1 else x.unsqueeze(-2) if single or not last else to_image_of_one_row(x)), single


def _from_image(y: Tensor, axes: int, single: bool) -> Tensor:
    """The result without the row and the batch that were added."""
    if axes == 1:
        y = y.squeeze(-2)
    return forget_base(y.squeeze(0) if single else y) if single or axes == 1 else y


def _max_pool(
    axes: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    name = f"max_pool{axes}d"
    last = axes != 1 or return_indices or (input._tracked and is_grad_enabled())
    x, single = _to_image(name, axes, input if last else input.contiguous(), last)  # PyTorch's maxima of rows alone are in C order
    pool = ops.max_pool3d if axes == 3 else ops.max_pool2d
    y, indices = pool(x, **_window_settings(name, axes, x, kernel_size, stride, padding, dilation, ceil_mode), ceil_mode=ceil_mode)
    if single or axes == 1:
        y, indices = _from_image(y, axes, single), _from_image(indices, axes, single) if return_indices else indices
    return (y, indices) if return_indices else y


def _average_pool(
    axes: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor: Any
) -> Tensor:
    name = f"avg_pool{axes}d"
    x, single = _to_image(name, axes, input)
    if divisor == 0:
        raise ArgumentError(f"{name}: divisor_override is 0; give the number that each window's sum is divided by, or None")
    found = _window_settings(name, axes, x, kernel_size, stride, padding, 1, ceil_mode)
    del found["dilation"]
    if x.dtype.kind in ("int", "uint"):
        return _from_image(_average_integers(x, found, ceil_mode, count_include_pad, divisor), axes, single)
    pool = ops.avg_pool3d if axes == 3 else ops.avg_pool2d
    if axes == 3:
        x = x.contiguous()  # PyTorch keeps the layout of images, not that of volumes
    return _from_image(pool(x, **found, ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor), axes, single)


def _average_integers(
    x: Tensor, found: dict[str, tuple[int, ...]], ceil_mode: bool, count_include_pad: bool, divisor: int | None
) -> Tensor:
    """Means of integers: the sums of the windows, cell by cell, divided and cut off at the point."""
    axes = len(found["kernel_size"])
    settings = {**found, "ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "divisor_override": divisor}
    spec = registry[f"avg_pool{axes}d"].shape(np.broadcast_to(np.float32(0), x.shape), **settings)
    outs, kernel, stride = spec.shape[2:], found["kernel_size"], found["stride"]
    reach = [(m - 1) * step + k - p - n for m, step, k, p, n in zip(outs, stride, kernel, found["padding"], x.shape[2:], strict=True)]
    sides = [side for p, more in zip(reversed(found["padding"]), reversed(reach), strict=True) for side in (p, max(more, 0))]

    total = _sum_windows(x, sides, kernel, stride, outs)
    if divisor is not None:
        return total.div(divisor, rounding_mode="trunc")
    ones = ops.full(shape=(1, 1, *x.shape[2:]), value=1, dtype=x.dtype.numpy, device=x.device)
    if count_include_pad:  # the padding counts, what windows reach beyond it does not
        ones = pad(ones, [p for p in reversed(found["padding"]) for _ in (0, 1)], value=1)
        sides = [side for p, more in zip(reversed(found["padding"]), reversed(reach), strict=True) for side in (0, max(more - p, 0))]
    return total.div(_sum_windows(ones, sides, kernel, stride, outs), rounding_mode="trunc")


def _sum_windows(x: Tensor, sides: list[int], kernel: tuple[int, ...], stride: tuple[int, ...], outs: tuple[int, ...]) -> Tensor:
    padded, total = pad(x, sides), None
    for tap in np.ndindex(*kernel):
        part = padded[(..., *[slice(i, i + (m - 1) * step + 1, step) for i, m, step in zip(tap, outs, stride, strict=True)])]
        total = part if total is None else total + part
    return total  # type: ignore[return-value]


@checked
def max_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Maximum of each window; stride defaults to the window. (batch, c, w) -> (batch, c, w'), and where each maximum stood if return_indices."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@checked
def max_pool1d_with_indices(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """max_pool1d with return_indices=True."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@checked
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@checked
def max_pool2d_with_indices(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """max_pool2d with return_indices=True."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@checked
def max_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Maximum of each window; stride defaults to the window. (batch, c, d, h, w) -> (batch, c, d', h', w'), and where each maximum stood if return_indices."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@checked
def max_pool3d_with_indices(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """max_pool3d with return_indices=True."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@checked
def avg_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input.
    (batch, c, w) -> (batch, c, w')."""
    return _average_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@checked
def avg_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number.
    (batch, c, h, w) -> (batch, c, h', w')."""
    return _average_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@checked
def avg_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number.
    (batch, c, d, h, w) -> (batch, c, d', h', w')."""
    return _average_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _pool_norms(average: Any, axes: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    """The mean of the powers, without a sign where that is negative, times the cells of a window, to the power of 1 / p."""
    kernel = to_axes(f"lp_pool{axes}d", "kernel_size", kernel_size, axes)
    # x x^(p - 1): where x has no such power, of a negative one say, the gradient is NaN whatever the window's is, as in PyTorch
    powers = ops.mul(input, input.pow(norm_type - 1)) if norm_type > 1 else input.pow(norm_type)
    mean = average(powers, kernel, stride, 0, ceil_mode)
    positive = ops.mul(mean.sign(), ops.relu(mean.abs()))
    return positive.mul(math.prod(kernel)).pow(1.0 / norm_type)  # type: ignore[no-any-return]


@checked
def lp_pool1d(input: Tensor, norm_type: int | float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, w) -> (batch, c, w')."""
    return _pool_norms(avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


@checked
def lp_pool2d(input: Tensor, norm_type: int | float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, h, w) -> (batch, c, h', w')."""
    return _pool_norms(avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


@checked
def lp_pool3d(input: Tensor, norm_type: int | float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, d, h, w) -> (batch, c, d', h', w')."""
    return _pool_norms(avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)
