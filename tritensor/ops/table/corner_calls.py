"""Calling the gradient corners by themselves: a corner's named values fetched as a node would, without dispatch or engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ops.table.record import Op, Partials


def call(
    op: Op, corner: Partials, g: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], attrs: dict[str, Any], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """One gradient (or None) per input; `inputs` and `outputs` are arrays or tensors, as the corner computes on."""
    # a gradient may name an attribute that the call left out
    attrs = {**op.attrs, **attrs}

    def fetch(kind: str, k: Any) -> Any:
        if kind == "input":
            return inputs[k] if k < len(inputs) else None
        if kind == "output":
            return outputs[k]
        if kind == "attr":
            return attrs[k]
        if kind == "needs":
            return needs
        if kind == "inputs":
            return tuple(inputs[k:])
        pick = shape_of if kind in ("shape", "shapes") else dtype_of
        if kind in ("shapes", "dtypes"):
            return tuple(pick(x) for x in inputs[k:])
        return pick(inputs[k]) if k < len(inputs) else None

    if corner.joint:
        whole: Any = corner.functions[0]
        out = whole(g, *[fetch(*f) for f in corner.fetches[0]])
        found = list(out) if isinstance(out, tuple | list) else [out]
        return tuple(found + [None] * (len(inputs) - len(found)))
    found = []
    for i in range(len(inputs)):
        function = corner.functions[i] if i < len(corner.functions) else None
        found.append(function(g, *[fetch(*f) for f in corner.fetches[i]]) if needs[i] and function is not None else None)
    return tuple(found)


def shape_of(x: Any) -> tuple[int, ...] | None:
    return None if x is None else tuple(getattr(x, "shape", ()))


def dtype_of(x: Any) -> Any:
    x = getattr(x, "_array", x)
    return np.dtype(x.dtype) if hasattr(x, "dtype") else None
