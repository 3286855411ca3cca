"""The CPU's side of an op whose author gave none: its reference, of 16-bit floats in float32, each result rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes

# By numpy's numbers of types, which are looked up in a third of the time that the types themselves take.
_NARROW = frozenset([d.numpy.num for d in dtypes.ALL if d.kind in ("float", "float8") and d.numpy.itemsize < 4])
_F32 = np.dtype(np.float32)


def plain_cpu(reference: Callable[..., Any], shape: Callable[..., Any], as_it_is: bool) -> Callable[..., Any]:
    """What the CPU runs of an op that has a reference alone. `as_it_is`: the op views or overwrites its inputs, so that these must be the arrays themselves."""
    if as_it_is:
        return reference

    # Overflow gives infinity and 0/0 NaN, as everywhere in this library: no warning. As a decorator errstate costs half of what a block does.
    compute = np.errstate(all="ignore")(reference)

    def cpu(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
        given: Any = arrays
        for x in arrays:
            if isinstance(x, np.ndarray) and x.dtype.num in _NARROW:
                given = [x.astype(_F32) if isinstance(x, np.ndarray) and x.dtype.num in _NARROW else x for x in arrays]
                break
        result = compute(*given, **attrs)
        if out is not None:
            out[...] = result
            return out
        said = shape(*arrays, **attrs)
        if not isinstance(result, tuple):  # a named tuple of numpy's, too
            return _round_result(result, said, arrays)
        return tuple([_round_result(y, s, arrays) for y, s in zip(result, said, strict=True)])

    return cpu


def _round_result(result: Any, spec: Any, arrays: tuple[Any, ...]) -> np.ndarray:
    """A result in the type that the shape rule gives, in memory of its own; as it is where the rule gives no Spec, which question 1 tells."""
    y, dtype = np.asarray(result), getattr(spec, "dtype", None)
    if dtype is None or (y.dtype is dtype and not _shares_memory(y, arrays)):
        return y
    return y.astype(dtype, copy=_shares_memory(y, arrays))


def _shares_memory(result: np.ndarray, arrays: tuple[Any, ...]) -> bool:
    """True where a result shares memory with an input, as numpy's views do: an op that is no view gives memory of its own."""
    if result.base is None:  # it is no view: at most an input itself
        return any([x is result for x in arrays])
    return any([isinstance(x, np.ndarray) and np.may_share_memory(x, result) for x in arrays])
