"""masked_select, masked_scatter and what PyTorch's compiler makes of them: elements picked and put where a mask is True."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import broadcast, ops
from tritensor.tensor.aliasing.basic_indexing import getitem
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.indexing.picking import index_put, select_true
from tritensor.tensor.functions.indexing.scattering import at_least_1d, require_same_dtype
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.parsing.nonzero_count import flat_nonzero
from tritensor.tensor.public_api.publish import function


def _broadcast_shape(name: str, x: Tensor, mask: Tensor) -> tuple[int, ...]:
    """The shape that x and a mask, which has to be one, broadcast to."""
    # Integers would be taken for positions by a reader, and for a mask by the op.
    if mask._array.dtype != np.bool_:
        raise DTypeError(f"{name}: mask is {mask.dtype.name}; it takes bool, such as mask != 0")
    return tuple(broadcast(name, tuple(x._array.shape), tuple(mask._array.shape), labels=("x", "mask")))


@function(out="exact")
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where mask (which broadcasts with x) is True, as a vector. Waits for the device.

    >>> x = tt.arange(5)
    >>> x.masked_select(x % 2 == 0)
    tensor([0, 2, 4])
    """
    shape = _broadcast_shape("masked_select", x, mask)
    return select_true(at_least_1d(ops.expand(x, shape=shape)), at_least_1d(ops.expand(mask, shape=shape)))


@function(inplace=True)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other.

    Waits for the device.
    """
    shape = _broadcast_shape("masked_scatter", x, mask)
    require_same_dtype("masked_scatter", x, source)
    spread = ops.expand(mask, shape=shape)
    size = spread._array.size
    if spread.is_meta:  # how many elements there are to be read decides an error, and no shape
        return ops.where(spread, ops.sum(source, dim=tuple(range(source.ndim)), keepdim=False), x)
    places = flat_nonzero(reshape_to(spread, (size,)))
    count = places._array.size
    if source._array.size < count:
        raise ShapeError(f"masked_scatter: source has {source._array.size} elements for {count} that the mask names")
    first = ops.index_view(reshape_to(source, (source._array.size,)), index=(slice(0, count),))
    whole = reshape_to(ops.expand(x, shape=shape), (size,))
    return forget_base(reshape_to(ops.index_put(whole, first, places, dims=(0,), front=False, accumulate=False), shape))


def _clamp_indices(x: Tensor, indices: Any) -> tuple[Any, ...]:
    """Index tensors brought to the nearest places that x has."""
    sizes = zip(indices, x._array.shape, strict=False)
    return tuple([i if i is None else ops.clamp(i, -n, n - 1) for i, n in sizes])


@function(method=False)
def _unsafe_masked_index(x: Tensor, mask: Tensor, indices: Any, fill: float) -> Tensor:
    """x[indices] where mask is True, fill elsewhere, where indices may be out of range."""
    if not x._array.size:
        return ops.full(shape=tuple(mask._array.shape), value=fill, dtype=x._array.dtype, device=x.device)
    # Out-of-range indices are allowed where the mask hides them: they are clamped, and the result is masked.
    taken = getitem(x, tuple([slice(None) if i is None else i for i in _clamp_indices(x, indices)]))
    return ops.where(mask, taken, dtypes.as_element(x._array.dtype, fill, "_unsafe_masked_index"))


@function(method=False)
def _unsafe_masked_index_put_accumulate(x: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """A copy of x with values added at indices where mask is True, where they may be out of range elsewhere."""
    if not x._array.size:
        return ops.copy(x)
    return index_put(x, _clamp_indices(x, indices), ops.where(mask, values, dtypes.as_element(x._array.dtype, 0, "index_put")), True)
