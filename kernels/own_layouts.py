"""Layouts of results that an op lays itself, by its name: an array without memory has them from here, others from the op's corners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.strides import (
    contiguous_format,
    elementwise_strides,
    image_strides,
    is_channels_last,
    ordered_strides,
    strides_in_format,
)
from tritensor.kernels.attention.layout import result_strides
from tritensor.kernels.indexing.index import index_order, plan
from tritensor.kernels.spectral.fourier import inward_order

Steps = tuple[int, ...]


def strides_of(name: str, shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    """The strides, in elements, of the op's result of that shape; None is C order. Asked for two dimensions or more."""
    rule = _RULES.get(name)
    return rule(shape, [a for a in arrays if hasattr(a, "strides")], attrs) if rule is not None else None


def _copy(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    return strides_in_format(shape, arrays[0].strides, attrs.get("memory_format", contiguous_format))


def _glu(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    (x,) = arrays
    return None if x.is_contiguous() else elementwise_strides(shape, ((shape, x.strides),))


def _cat(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    if not all([is_channels_last(x.shape, x.strides) for x in arrays]):
        return None
    return image_strides(shape, tuple([(x.shape, x.strides) for x in arrays]))


def _stack(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    """Those of cat, cut where the arrays meet."""
    first, dim = arrays[0].shape, attrs["dim"]
    if dim >= len(first):
        return None
    joined = _cat((*first[:dim], first[dim] * len(arrays), *first[dim + 1 :]), arrays, attrs)
    return joined and (*joined[:dim], first[dim] * joined[dim], *joined[dim:])


def _attention(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    q, k, v, *mask = arrays
    return result_strides(q, k, v, mask[0] if mask else None, attrs.get("p", 0.0))


def _index_get(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    x, *indices = arrays
    return index_order(shape, x, indices, plan(x.shape, attrs["dims"], attrs["front"]))


def _fft(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    (x,) = arrays
    if attrs.get("keep_order"):
        return ordered_strides(shape, sorted(range(len(shape)), key=lambda d: -abs(x.strides[d])))  # as numpy's empty_like
    return ordered_strides(shape, inward_order(x.strides, attrs["dims"] if "dims" in attrs else (attrs["dim"],)))


def _fft_of_real(shape: Steps, arrays: Sequence[Any], attrs: dict[str, Any]) -> Steps | None:
    (x,) = arrays
    several = len(attrs["dims"]) > 1  # of several dims PyTorch makes complex numbers first
    return ordered_strides(
        shape, inward_order(elementwise_strides(x.shape, ((x.shape, x.strides),)) if several else x.strides, attrs["dims"])
    )


_RULES: dict[str, Callable[[Steps, Sequence[Any], dict[str, Any]], Steps | None]] = {
    "attention": _attention, "flash_attention": _attention, "copy": _copy, "glu": _glu, "cat": _cat, "stack": _stack, "index_get": _index_get,
    "fft_c2c": _fft, "fft_r2c": _fft, "fft_c2r": _fft, "fft_of_real": _fft_of_real,
}  # fmt: skip
