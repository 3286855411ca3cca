"""Gradient corners called by themselves, and what their results are to the inputs."""

from __future__ import annotations

import numpy as np

from tritensor.ops.table import Op
from tritensor.ops.table.corner_calls import call as call


def declared(op: Op, i: int) -> bool:
    """True where the record gives input i a gradient at all (a tuple of functions can hold None)."""
    if op.rule is None:
        return False
    return op.rule.joint or (i < len(op.rule.functions) and op.rule.functions[i] is not None)


def sum_to_shape(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A gradient summed over the axes along which an input of `shape` was broadcast, as the engine does it."""
    lead = gradient.ndim - len(shape)
    if lead < 0:
        return gradient
    gradient = gradient.sum(tuple(range(lead)), dtype=np.float64) if lead else gradient
    axes = tuple(i for i, (have, want) in enumerate(zip(gradient.shape, shape, strict=True)) if want == 1 and have != 1)
    return gradient.sum(axes, keepdims=True, dtype=np.float64) if axes else gradient
