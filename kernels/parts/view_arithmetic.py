"""Arithmetic of shapes and strides: whether a view exists, tensors in another shape, dims put back, channels that lie innermost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground import strides
from tritensor.ops import array
from tritensor.ops.array import Array, CudaArray
from tritensor.ops.table import ops


def viewable(x: Array, shape: tuple[int, ...]) -> bool:
    """Whether x's strides allow a view of `shape` (of as many elements)."""
    return array.is_contiguous(x) or array.reshape_strides(x.shape, array.element_strides(x), shape) is not None


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """A Tensor in another shape: a view where the strides allow one, else a view of a copy."""
    return ops.reshape(x if viewable(x._array, shape) else ops.copy(x), shape=shape)


def zero_tensor(shape: tuple[int, ...], like: Any) -> Any:
    """Zeros of a Tensor's type, on its device."""
    return ops.full(shape=tuple(shape), value=0, dtype=like._array.dtype, device=like.device)


def inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `dims`."""
    back = [0] * len(dims)
    for i, d in enumerate(dims):
        back[d] = i
    return tuple(back)


def transposed_dims(ndim: int) -> tuple[int, ...]:
    """The dims of a transposed matrix, or of a batch of them."""
    return *range(ndim - 2), ndim - 1, ndim - 2


def merge_axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sizes and, for each array, strides: neighbouring axes that every array steps through evenly are one, those of size 1 none."""
    axes: list[tuple[int, list[int]]] = []
    for size, *steps in zip(shape, *strides, strict=True):
        if size == 1:
            continue
        if axes and all([before == step * size for before, step in zip(axes[-1][1], steps, strict=True)]):
            axes[-1] = (axes[-1][0] * size, steps)
        else:
            axes.append((size, steps))
    return tuple([n for n, _ in axes]), [tuple([steps[i] for _, steps in axes]) for i in range(len(strides))]


def is_channels_last(x: CudaArray) -> bool:
    """Whether channels lie innermost, so that a window's channels load as one wide access."""
    return strides.is_channels_last(x.shape, x.strides)


def volume_strides(x: CudaArray) -> tuple[int, ...]:
    """The five strides of rows or images (N, C, one to three axes), taken as volumes of one plane."""
    n, c, *rest = x.strides
    return (n, c, *(0,) * (3 - len(rest)), *rest)


def volume(x: CudaArray) -> CudaArray:
    """x (N, C, one to three axes) as (N, C, D, H, W), a view."""
    return x.as_strided((*x.shape[:2], *(1,) * (5 - len(x.shape)), *x.shape[2:]), volume_strides(x), 0)
