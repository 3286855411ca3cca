"""segment_reduce: neighbouring slices of a dimension reduced, segment by segment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.array import from_host, to_host
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.indexing.scattering import reduce_into
from tritensor.tensor.public_api.publish import function

START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
REDUCTION = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


@function(method=False)
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
    axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """The `reduce` ("sum", "mean", "max" or "amax", "min" or "amin", "prod") of each segment of `axis`: data (.., n, ..) becomes
    (.., segments, ..). Waits for the device.

    Args:
        lengths: how long the segments are, (segments,) or, for an axis further in, (.., segments), one row for each of the slices before.
        offsets: where they begin and the last one ends, one more; instead of lengths.
        indices: not there, as in PyTorch.
        unsafe: let lengths leave a rest, which no segment has; offsets may.
        initial: a number that takes part in every segment; without it an empty one gives 0, 1, an infinity, or for "mean" NaN.
    """
    d = normal_dim("segment_reduce", axis, len(data._array.shape))
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)  # scatter_reduce's words
    if reduce not in START:
        raise ArgumentError(f"segment_reduce: reduce is {reduce!r}; it is 'sum', 'mean', 'max', 'min' or 'prod'")
    if not data.dtype.is_floating_point:
        raise DTypeError(f"segment_reduce: data is {data.dtype.name}; it takes floating types")
    if indices is not None or (lengths is None) == (offsets is None):
        raise ArgumentError("segment_reduce: give lengths or offsets, one of them; indices are not there")
    sizes, places = _parse_segments(data, d, lengths, offsets, bool(unsafe))
    count, n = sizes.shape[-1], data._array.shape[d]
    before, after = tuple(data._array.shape[:d]), tuple(data._array.shape[d + 1 :])
    start = START[reduce] if initial is None else float(initial)
    target = ops.full(shape=(*before, count + 1, *after), value=start, dtype=data._array.dtype, device=data.device)  # the last is the rest
    index = ops.reshape(new_tensor(from_host(places, data.device)), shape=(*before, n, *(1,) * len(after)))
    found = reduce_into("segment_reduce", target, d, ops.expand(index, shape=tuple(data._array.shape)), data, REDUCTION[reduce], True)
    found = ops.index_view(found, index=(*(slice(None),) * d, slice(0, count)))
    if reduce != "mean":
        return ops.copy(found)
    share = np.where(sizes > 0, sizes, 1 if initial is not None else 0).astype(np.float64).reshape(*before, count, *(1,) * len(after))
    return ops.div(found, ops.cast(new_tensor(from_host(share, data.device)), dtype=data._array.dtype))


def _parse_segments(data: Tensor, d: int, lengths: Tensor | None, offsets: Tensor | None, unsafe: bool) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the segments (.., segments), and to which of them each slice of the axis belongs (.., n); the number of segments is none."""
    given, name = (lengths, "lengths") if lengths is not None else (offsets, "offsets")
    assert given is not None
    values: Any = given._array if data.is_meta else to_host(given._array)
    n, before = data._array.shape[d], tuple(data._array.shape[:d])
    if values.dtype.kind not in "iu":
        raise DTypeError(f"segment_reduce: {name} is {given.dtype.name}; it takes integers")
    if values.shape[:-1] != before or not values.shape:
        raise ShapeError(f"segment_reduce: {name} {values.shape} for axis {d} of {tuple(data._array.shape)}; it is {(*before, 'segments')}")
    if data.is_meta:  # how many segments there are the shape says; where they lie decides no shape
        count = values.shape[-1] - (lengths is None)
        return np.zeros((*before, count), np.int64), np.broadcast_to(np.int64(0), (*before, n))
    edges: Any = values.astype(np.int64)
    if lengths is not None:
        edges = np.concatenate([np.zeros((*before, 1), np.int64), np.cumsum(edges, -1)], -1)
    sizes = np.diff(edges, axis=-1)
    whole = not edges.size or (bool((edges[..., 0] == 0).all()) and bool((edges[..., -1] == n).all()))
    if not whole and not unsafe and lengths is not None:
        raise ShapeError(f"segment_reduce: {name} do not add to {n}, the size of axis {d}; give unsafe=True for segments that leave a rest")
    # np.repeat below would raise without a word of which argument is wrong.
    if edges.size and (int(sizes.min(initial=0)) < 0 or int(edges.min()) < 0 or int(edges.max()) > n):
        raise ShapeError(f"segment_reduce: {name} make segments of negative length, or beyond the {n} slices of axis {d}")
    count = sizes.shape[-1]
    rest = np.concatenate([edges[..., :1], sizes, n - edges[..., -1:]], -1)  # before the first, the segments, after the last
    names = np.broadcast_to(np.array([count, *range(count), count]), rest.shape)
    return sizes, np.repeat(names.reshape(-1), rest.reshape(-1)).reshape(*before, n)
