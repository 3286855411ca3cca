"""Multi-tensor operations on gradients: their norms and their scaling, in a few launches for all of them on a GPU, and few calls on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground.dtypes import bfloat16, float16, float32, float64
from tritensor.ops.array import CudaArray, is_contiguous
from tritensor.ops.lazy_array import compute_now, run_before_write
from tritensor.ops.table import ops, registry
from tritensor.tensor.aliasing.views import is_write_recorded
from tritensor.tensor.core import Tensor, new_tensor

if TYPE_CHECKING:
    from types import ModuleType

_KINDS = {float16, bfloat16, float32, float64}
_FEW = 1 << 14  # elements of an array on the CPU that costs less copied beside others than in a call of its own


def _load_kernels() -> ModuleType:
    """The kernels: loaded, and Triton with them, when there is a tensor on a GPU."""
    from tritensor.kernels.optimizers import multi_tensor

    return multi_tensor


def _group_tensors(tensors: Iterable[Tensor], suited: Callable[[Tensor], bool]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Those for one table, by device and type, and the others: on the CPU, of other types, not dense."""
    groups: dict[Any, list[Tensor]] = {}
    others = []
    for x in tensors:
        if type(x._array) is CudaArray and x.dtype in _KINDS and is_contiguous(x._array) and suited(x):
            groups.setdefault((x.device, x.dtype), []).append(x)
        else:
            others.append(x)
    return list(groups.values()), others


@np.errstate(all="ignore")
def norms(tensors: Iterable[Tensor], order: float) -> tuple[list[Tensor], list[Tensor]]:
    """0-d norms of the tensors that are on a GPU, one for each device and type, and of small ones on the CPU, and the tensors that are in none of them.

    Each is float32, or float64 of float64. On the CPU there are those of order 2; where there is no kernel for the order all tensors are left.
    """
    # the largest of no elements is not defined, and is left to the op that says so
    groups, others = _group_tensors(tensors, lambda x: order < math.inf or x.numel() > 0)
    if groups and order not in _load_kernels().ORDERS:
        return [], [*[x for group in groups for x in group], *others]
    found = [new_tensor(_load_kernels().norm_of_all([x._array for x in group], order)) for group in groups]
    if order != 2:
        return found, others
    small: dict[Any, list[np.ndarray]] = {}
    left = []
    for x in others:
        a = x._array
        if type(a) is np.ndarray and a.dtype.char in "fd" and 0 < a.size <= _FEW:
            small.setdefault(a.dtype, []).append(a.reshape(-1))
        else:
            left.append(x)
    squares = registry["sum_of_squares"].cpu
    return found + [new_tensor(np.asarray(np.sqrt(squares(np.concatenate(arrays), dim=(0,))))) for arrays in small.values()], left


@np.errstate(all="ignore")
def scale_(tensors: Iterable[Tensor], factor: Tensor, found: Tensor | None = None, name: str = "mul_") -> list[Tensor]:
    """Multiply the tensors that are on a GPU, and plain ones on the CPU, by a 0-d factor, in place, and give those that are left as they are.

    `found`, 0-d, becomes 1 where an element was infinite or NaN before. `name` is what the tensors' versions are moved on by.
    """
    # a write that the graph must see goes through the recorded op
    groups, others = _group_tensors(tensors, lambda x: not is_write_recorded(x))
    for group in groups:
        on = group[0].device
        # a kernel writes on its own device; flags of several devices are joined below
        seen = None if found is None else found.to(on)
        by = factor.to(on)
        compute_now(by, *([] if seen is None else [seen]))
        for x in group:
            run_before_write(x._array)
            copy_for_borrowers(x)
        _load_kernels().scale_all([x._array for x in group], by._array, None if seen is None else seen._array)
        if seen is not None and seen is not found:
            found.copy_(ops.maximum(found, seen.to(found.device)))  # type: ignore[union-attr]
        for x in group:
            version_of(x).bump(name)
    if found is not None or type(number := factor._array) is not np.ndarray:
        return others
    left = []
    for x in others:
        a = x._array
        if type(a) is np.ndarray and a.dtype is number.dtype and a.dtype.char in "fd" and a.flags.writeable and not is_write_recorded(x):
            run_before_write(a)
            copy_for_borrowers(x)
            np.multiply(a, number, out=a)
            version_of(x).bump(name)
        else:
            left.append(x)
    return left
