"""Reductions of few elements on the CPU in one step: numpy's own call, one Tensor, one node. None where the array or an argument is not a usual one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import Version, calls_new_node, new_node
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor, new_tensor

FEW = 128  # elements up to which the way to numpy costs more than what numpy does
calls_new_node(globals())
ALL_DIMS = [tuple(range(n)) for n in range(65)]  # of a tensor of n dimensions
EACH_DIM = [(d,) for d in range(64)]


def make_fast_reduction(name: str) -> Callable[..., Tensor | None]:
    """The fast path of a reduction over all dims or one. Its op's reference has a `plain` side, `(array, dims, keepdim)`, which gives
    an array of its own or None; the op is looked up at the first call."""
    found: Any = None  # (op, its plain side, what a node keeps): one assignment, so that threads which find it at once put it there whole

    def forget(op: str) -> None:
        nonlocal found
        if op == name:
            found = None

    registry.changed.append(forget)

    def fast(
        x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: bool | None = None
    ) -> Tensor | None:
        nonlocal found
        array = x._array
        # Larger arrays: the op's own choice among threads and blocks pays.
        if type(array) is not np.ndarray or array.size > FEW or dtype is not None or axis is not None or keepdims is not None:
            return None
        n = array.ndim
        if dim is None:
            # Shared tuples: a node keeps them, so none is built at each call.
            dims = ALL_DIMS[n]
        elif type(dim) is int and -n <= dim < n:
            dims = EACH_DIM[dim % n]
        else:
            return None
        known = found
        if known is None:
            op = registry[name]
            (keep_x,), (keep_y, *_), meta = op.keep((True,))
            found = known = op, getattr(op.cpu, "plain", None), keep_x, keep_y, meta
        op, plain, keep_x, keep_y, meta = known
        if plain is None:  # an op that took the place of ours
            return None
        result = plain(array, dims, keepdim)
        if result is None:
            return None
        out = new_tensor(result)
        if x._tracked and state.enabled:
            held = None
            # The gradient needs the result (extrema): a later write to it must be noticed.
            if keep_y:
                out._version_counter = Version()
                held = ((result, out._version_counter),)
            attrs = {"dim": dims, "keepdim": keepdim}
            out._node = new_node(
                op, (x._node or x,), (x,) if keep_x else None, held, attrs, ((array.shape, array.dtype),) if meta else None
            )
            out._tracked = True
        return out

    return fast
