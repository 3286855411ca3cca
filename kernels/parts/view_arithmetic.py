"""Arithmetic of shapes and strides: whether a view exists, tensors in another shape, dims put back, channels that lie innermost."""

from __future__ import annotations

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
    return ops.reshape(x if viewable(x.array, shape) else ops.copy(x), shape=shape)


def zero_tensor(shape: tuple[int, ...], like: Any) -> Any:
    """Zeros of a Tensor's type, on its device."""
    return ops.full(shape=tuple(shape), value=0, dtype=like.array.dtype, device=like.device)


def inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `dims`."""
    back = [0] * len(dims)
    for i, d in enumerate(dims):
        back[d] = i
    return tuple(back)


def is_channels_last(x: CudaArray) -> bool:
    """Whether channels lie innermost, so that a window's channels load as one wide access."""
    return strides.is_channels_last(x.shape, x.strides)
