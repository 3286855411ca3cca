"""NaN and infinities replaced by numbers."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.cpu.blocks import zeroed
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import Sample


# y = x where it is finite, else the number that stands for NaN, inf or -inf; the slope is 1 or 0
@triton.jit
def _replaced(x, nan, posinf, neginf):
    y = maths.where(x == float("inf"), posinf, x)
    y = maths.where(x == float("-inf"), neginf, y)
    return maths.where(x != x, nan, y)


@triton.jit
def _replaced_grad(g, x):
    return maths.where(maths.both(x > float("-inf"), x < float("inf")), g, maths.zeros(g))


def _replaced_reference(x: np.ndarray, *, nan: float = 0.0, posinf: float = 0.0, neginf: float = 0.0) -> np.ndarray:
    """x where it is finite, else `nan`, `posinf` or `neginf`."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _replaced_cpu(x: np.ndarray, *, nan: float = 0.0, posinf: float = 0.0, neginf: float = 0.0) -> np.ndarray:
    # most arrays hold nothing to replace, which costs a third to see
    return x.copy() if np.isfinite(x).all() else _replaced_reference(x, nan=nan, posinf=posinf, neginf=neginf)


def _replaced_numpy(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    return zeroed(g, np.logical_not(np.isfinite(x)))


def _strange(rng: np.random.Generator) -> list[Sample]:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -3.0])
    return [
        Sample(x, smooth=False),
        Sample(x, nan=1.5, posinf=2.0, neginf=-4.0, smooth=False),
        Sample(rng.uniform(-2.0, 2.0, (3, 5)), nan=1.0),
    ]


elementwise(
    "nan_to_num", _replaced, _replaced_grad, _replaced_reference, cpu=_replaced_cpu, promote="same", kinds=("float",), attributes=("nan", "posinf", "neginf"),
    domain=Domain(-2.0, 2.0), one_rounding=True, cpu_backward=(_replaced_numpy,), extra=_strange,
)  # fmt: skip
