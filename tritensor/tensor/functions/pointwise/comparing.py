"""Functions that compare two tensors as a whole: isclose, allclose, equal; and comparisons that are written over their first argument."""

from __future__ import annotations

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import make_constant
from tritensor.tensor.functions.pointwise.elementary import BINARY, COMPARISONS, promote_operands
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function, rename_function, wrap_in_place


@function
def isclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """|x - other| <= atol + rtol * |other|, element by element; equal infinities are close, NaN to NaN only with `equal_nan`."""
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: rtol is {rtol}, atol {atol}; neither may be negative; give numbers of 0 or more")
    a, b = promote_operands("isclose", x, other)
    close = ops.eq(a, b)
    if a.dtype.is_floating_point or a.dtype.is_complex:
        # inf - inf is NaN and compares False: equal infinities were found by eq above.
        gap = ops.abs(a - b)
        near = ops.logical_and(ops.isfinite(b), ops.le(gap, atol + rtol * ops.abs(b)))
        close = ops.logical_or(close, ops.logical_and(ops.isfinite(gap), near))
        if equal_nan:
            close = ops.logical_or(close, ops.logical_and(ops.isnan(a), ops.isnan(b)))
        return close
    return ops.logical_or(
        close, ops.le(ops.abs(ops.cast(a, dtype=np.dtype(np.float64)) - b), atol + rtol * ops.abs(ops.cast(b, dtype=np.dtype(np.float64))))
    )


@function
def allclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close (see isclose)."""
    return _are_all_true(isclose(x, other, rtol, atol, equal_nan))


@function
def equal(x: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements."""
    return x._array.shape == other._array.shape and _are_all_true(ops.eq(x, other))


def _are_all_true(flags: Tensor) -> bool:
    """Whether all are True; one of them, not all, comes from a device."""
    # numpy's own reduction: no tensor is made for one bool.
    if isinstance(flags._array, np.ndarray):
        return bool(flags._array.all())
    return bool(ops.all(flags, dim=tuple(range(len(flags._array.shape))), keepdim=False).item())


def _publish_in_place(name: str, doc: str, *aliases: str) -> None:
    """x.eq_(other) and its like: a result that is constant in both, where a derivative follows other; what it is where x alone is followed, overwrite knows."""

    def call(x: Tensor, other: Operand) -> Tensor:
        found = getattr(ops, name)(x, other)
        # The written tensor joins other's graph, where its gradient is 0.
        if isinstance(other, Tensor) and is_followed(other) and dtypes.has_gradient(x._array.dtype):
            return make_constant(name, ops.cast(found, dtype=x._array.dtype), x, other)
        return found

    f = rename_function(call, name, doc)
    for public_name in (name, *aliases):
        setattr(Tensor, public_name + "_", wrap_in_place(f, public_name + "_", True))


for _name in COMPARISONS:
    _doc, _aliases = BINARY[_name]
    _publish_in_place(_name, _doc, *_aliases)
