"""Pooling to a given size: windows that divide every axis evenly, output o of n over cells floor(o size / n) to ceil((o + 1) size / n)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.nn.functional.window_arguments import to_image_of_one_row
from tritensor.ops.array import is_contiguous
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked

Sizes = int | Sequence[int | None] | None


def _check_sizes(name: str, input: Tensor, output_size: Any, axes: int, needed: int) -> tuple[Tensor, tuple[int, ...], bool]:
    """The input with a batch, the size of an adaptive pooling's result (None: as the input's), and whether the batch was added.

    The input's dimensions from `needed` on must have elements.
    """
    if input.ndim not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels) or (channels,) and {axes} axes"
        )
    if 0 in input.shape[needed:]:
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} has a size of 0 in dims {tuple(range(input.ndim))[needed:]}, which need elements"
        )
    given = tuple(output_size) if isinstance(output_size, Sequence) and not isinstance(output_size, str) else (output_size,) * axes
    if len(given) == 1:
        given *= axes
    if len(given) != axes:
        raise ShapeError(f"{name}: output_size {output_size!r} has {len(given)} sizes; give one, or {axes}")
    size = tuple(n if s is None else one_integer(s) for s, n in zip(given, input.shape[-axes:], strict=True))
    if not all(isinstance(s, int) and not isinstance(s, bool) for s in size):
        raise TypeError(f"{name}: output_size is {output_size!r}; give an integer, or one for each of {axes} axes")
    if min(size) < 0:
        raise ShapeError(f"{name}: output_size {output_size!r}: sizes cannot be negative; give 1 or more")
    if input.dtype.kind != "float":
        raise DTypeError(f"{name}: input is {input.dtype.name}; {name} takes float types; cast it with .to(float32)")
    single = input.ndim == axes + 1
    return _add_batch(input, single, axes), size, single


def _add_batch(input: Tensor, single: bool, axes: int) -> Tensor:
    """The input with a batch. PyTorch keeps the layout of batches of images only, and of rows, which are images of one row to it."""
    x = input.contiguous() if single or axes == 3 else input
    return x.unsqueeze(0) if single else x


def _pool_nothing(input: Tensor, size: tuple[int, ...], axes: int) -> Tensor:
    """No windows: a result without elements, whose gradient to the input is 0."""
    # a sum over nothing is 0 and stays in the graph, which a fresh tensor would leave
    one = ops.sum(input, dim=tuple(range(input.ndim - axes, input.ndim)), keepdim=True)
    return ops.expand(one[(..., *[slice(min(n, 1)) for n in size])], shape=(*input.shape[:-axes], *size))


def _is_laid_as_image(x: Tensor) -> bool:
    """Whether the order of rows (batch, channels, w) in memory is more than C's, so that they are treated as an image of one row."""
    return x._array.shape[-1] == 1 or not is_contiguous(x._array)


def _average(name: str, input: Tensor, output_size: Any, axes: int) -> Tensor:
    x, size, single = _check_sizes(name, input, output_size, axes, 1 if axes == 3 else -axes)
    if 0 in size or not input.numel():
        return _pool_nothing(input, size, axes)
    if axes == 1 and _is_laid_as_image(x):  # PyTorch's rows are images of one row: the result has the layout of such
        return forget_base(_average(name, to_image_of_one_row(x), (1, *size), 2).squeeze(-2))
    y = _average_evenly(x, size, axes) if x.is_cuda else None
    if y is None:
        y = ops.resample(x, size=size, mode="area", align_corners=False, factors=(None,) * axes)
    return forget_base(y.squeeze(0)) if single else y


def _average_evenly(x: Tensor, size: tuple[int, ...], axes: int) -> Tensor | None:
    """Means over whole axes, or over windows of one size, by kernels that know no other; None for windows of several sizes."""
    cells = tuple(x.shape[-axes:])
    # one window over all: a reduction needs no windows
    if max(size) == 1:
        return ops.mean(x, dim=tuple(range(x.ndim - axes, x.ndim)), keepdim=True)
    # windows of several sizes are for the general kernel alone
    if axes == 1 or any(n % m for n, m in zip(cells, size, strict=True)):
        return None
    steps = tuple([n // m for n, m in zip(cells, size, strict=True)])
    average = ops.avg_pool2d if axes == 2 else ops.avg_pool3d
    return average(x, kernel_size=steps, stride=steps, padding=(0,) * axes, ceil_mode=False, count_include_pad=True)  # type: ignore[no-any-return]


def _max_pool(name: str, input: Tensor, output_size: Any, axes: int, return_indices: bool) -> Any:
    x, size, single = _check_sizes(name, input, output_size, axes, 1)
    if 0 in size or not input.numel():
        y = _pool_nothing(input, size, axes)
        # there is no place that a maximum could have stood at
        indices = ops.full(shape=tuple(y.shape), value=0, dtype=dtypes.int64.numpy, device=x.device)
    elif axes == 1 and _is_laid_as_image(x):
        y, indices = (forget_base(t.squeeze(-2)) for t in _max_pool(name, to_image_of_one_row(x), (1, *size), 2, True))
    else:
        y, indices = ops.adaptive_max_pool(x, size=size)
        if single:
            y, indices = forget_base(y.squeeze(0)), forget_base(indices.squeeze(0))
    return (y, indices) if return_indices else y


@checked
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Means over windows that divide each row evenly, output o of n over cells floor(o size / n) to ceil((o + 1) size / n): (batch, c, w) -> (batch, c, n)."""
    return _average("adaptive_avg_pool1d", input, output_size, 1)


@checked
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows that divide each axis evenly; None keeps a size: (batch, c, h, w) -> (batch, c, *output_size)."""
    return _average("adaptive_avg_pool2d", input, output_size, 2)


@checked
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows that divide each axis evenly; None keeps a size: (batch, c, d, h, w) -> (batch, c, *output_size)."""
    return _average("adaptive_avg_pool3d", input, output_size, 3)


@checked
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int], return_indices: bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, and their flat places if return_indices: (batch, c, w) -> (batch, c, n)."""
    return _max_pool("adaptive_max_pool1d", input, output_size, 1, return_indices)


@checked
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: int | Sequence[int], return_indices: bool = False) -> Any:
    """adaptive_max_pool1d with return_indices=True."""
    return _max_pool("adaptive_max_pool1d_with_indices", input, output_size, 1, True)


@checked
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, None keeps a size, and their flat places if return_indices:
    (batch, c, h, w) -> (batch, c, *output_size)."""
    return _max_pool("adaptive_max_pool2d", input, output_size, 2, return_indices)


@checked
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """adaptive_max_pool2d with return_indices=True."""
    return _max_pool("adaptive_max_pool2d_with_indices", input, output_size, 2, True)


@checked
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, None keeps a size, and their flat places if return_indices:
    (batch, c, d, h, w) -> (batch, c, *output_size)."""
    return _max_pool("adaptive_max_pool3d", input, output_size, 3, return_indices)


@checked
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """adaptive_max_pool3d with return_indices=True."""
    return _max_pool("adaptive_max_pool3d_with_indices", input, output_size, 3, True)
