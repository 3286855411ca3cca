"""Rounding, signs, and numbers that stand for NaN and infinity: floor, ceil, trunc, round, sign, nan_to_num. Steps have slope 0, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import zero_where
from tritensor.kernels.parts.elementwise import elementwise, flat
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import FLOATS, Sample, ops


def _halves(rng: np.random.Generator) -> list[Sample]:
    return [Sample(np.arange(-3.5, 4.0, 0.5), smooth=False), Sample(rng.integers(-3, 3, (7,)) + rng.uniform(0.2, 0.4, (7,)))]


_BETWEEN = Domain(0.1, 0.4)
for _name, _formula, _ufunc in (
    ("floor", maths.floor, np.floor),
    ("ceil", maths.ceil, np.ceil),
    ("trunc", maths.trunc, np.trunc),
    ("round", maths.rint, np.rint),
):
    elementwise(_name, _formula, flat, _ufunc, kinds=("float",), domain=_BETWEEN, one_rounding=True, extra=_halves)


def _sign_reference(x: np.ndarray) -> np.ndarray:
    s = np.sign(1 * x)  # of truth values, too
    return np.where(np.isnan(s), 0, s)  # as PyTorch has it


def _sign_rule(g: Any, x: Any) -> Any:
    """0, but of complex numbers, s = x / |x|: (g - s re(conj(s) g)) / |x|, what of g turns x; 0 at 0."""
    if x._array.dtype.kind != "c":
        return backends.on_tensors.zeros(g)
    s, size = ops.sign(x), ops.abs(x)
    along = ops.mul(s, ops.real(ops.mul(ops.conj(s), g)))
    return ops.where(ops.eq(size, 0.0), 0.0, ops.div(ops.sub(g, along), ops.where(ops.eq(size, 0.0), 1.0, size)))


elementwise(
    "sign", maths.sign, flat, _sign_reference, cpu=backends.sign_of_array, promote="same", kinds=("bool", "uint", "int", "float", "complex"), holomorphic=False,
    rule=(_sign_rule,), domain=Domain(-2.0, 2.0, (0.0,)), one_rounding=True, borrows=("x",), dtypes=(*FLOATS, "int64", "uint8"),
)  # fmt: skip


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
    return zero_where(g, np.logical_not(np.isfinite(x)))


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
