"""Positions of what is not 0. How many there are decides a shape: that count, and nothing else, comes from a device to the host."""

from __future__ import annotations

import numpy as np

from tritensor.ops.array import from_host
from tritensor.ops.lazy_array import compute_now
from tritensor.ops.strided_array import no_values
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor, new_tensor


def _nonzero_on_device(x: Tensor) -> Tensor:
    """(count, ndim) the coordinates of what is not 0 in a tensor on a device. Waits for it."""
    if x.is_meta:
        raise no_values("getitem", "how many elements are True, or not 0, is the size of the result")
    count = int(ops.sum(ops.ne(x, 0), dim=tuple(range(len(x._array.shape))), keepdim=False).item())
    return ops.nonzero_static(x, size=count, fill_value=-1)


def flat_nonzero(flags: Tensor) -> Tensor:
    """(count,) the positions in a vector of what is not 0. Waits for the device."""
    compute_now(flags)
    if isinstance(flags._array, np.ndarray):
        return new_tensor(from_host(np.flatnonzero(flags._array), flags.device))
    rows = _nonzero_on_device(flags)
    return ops.reshape(rows, shape=(rows._array.size,))


def nonzero_rows(x: Tensor) -> Tensor:
    """(count, ndim) the coordinates of what is not 0, those along one dimension together in memory, as PyTorch lays them. Waits for the device."""
    ndim = len(x._array.shape)
    compute_now(x)
    if isinstance(x._array, np.ndarray):
        columns = np.stack(np.nonzero(x._array)) if ndim else np.zeros((0, int(bool(x._array))), np.int64)
        return new_tensor(columns.T)
    rows = _nonzero_on_device(x)
    return ops.permute(ops.copy(ops.permute(rows, dims=(1, 0))), dims=(1, 0)) if ndim else rows


def nonzero_columns(x: Tensor) -> tuple[Tensor, ...]:
    """The same as a contiguous vector (count,) for each dimension, of which there is at least one."""
    compute_now(x)
    if isinstance(x._array, np.ndarray):
        return tuple([new_tensor(np.ascontiguousarray(f)) for f in np.nonzero(x._array)])
    rows = _nonzero_on_device(x)
    return tuple([ops.copy(ops.index_view(rows, index=(slice(None), d))) for d in range(len(x._array.shape))])
