"""Rounding and signs: floor, ceil, trunc, round, sign. Steps have slope 0, so their gradients are zeros, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.parts import backends, maths
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
    if x.array.dtype.kind != "c":
        return backends.on_tensors.zeros(g)
    s, size = ops.sign(x), ops.abs(x)
    along = ops.mul(s, ops.real(ops.mul(ops.conj(s), g)))
    return ops.where(ops.eq(size, 0.0), 0.0, ops.div(ops.sub(g, along), ops.where(ops.eq(size, 0.0), 1.0, size)))


elementwise(
    "sign", maths.sign, flat, _sign_reference, cpu=backends.sign_of_array, promote="same", kinds=("bool", "uint", "int", "float", "complex"), holomorphic=False,
    rule=(_sign_rule,), domain=Domain(-2.0, 2.0, (0.0,)), one_rounding=True, borrows=("x",), dtypes=(*FLOATS, "int64", "uint8"),
)  # fmt: skip
