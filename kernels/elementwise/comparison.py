"""Comparisons, truth values, tests for NaN and infinity, and bits: ops whose results have no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.kernels.parts import formula_llvm
from tritensor.kernels.parts.cpu.blocks import beside_gaps
from tritensor.kernels.parts.elementwise import elementwise, forward_of
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, INTS, Sample

_REAL = ("bool", "uint", "int", "float")
_ANY = (*_REAL, "complex")
_TYPES = (*FLOATS, "int64", "uint8", "bool")
_BITS = ("bool", "uint", "int")


# y = a = b, and so on
@triton.jit
def _eq(a, b):
    return a == b


@triton.jit
def _ne(a, b):
    return a != b


@triton.jit
def _lt(a, b):
    return a < b


@triton.jit
def _le(a, b):
    return a <= b


@triton.jit
def _gt(a, b):
    return a > b


@triton.jit
def _ge(a, b):
    return a >= b


# what is not 0 counts as true
@triton.jit
def _logical_not(x):
    return x == 0


@triton.jit
def _logical_and(a, b):
    return (a != 0) & (b != 0)


@triton.jit
def _logical_or(a, b):
    return (a != 0) | (b != 0)


@triton.jit
def _logical_xor(a, b):
    return (a != 0) != (b != 0)


# x - x is 0 for finite x, NaN else
@triton.jit
def _isnan(x):
    return x != x


@triton.jit
def _isinf(x):
    return ((x - x) != 0) & (x == x)


@triton.jit
def _isfinite(x):
    return (x - x) == 0


# ~x = -x - 1, spelled without the constant -1, which no unsigned type holds
@triton.jit
def _bitwise_not(x):
    return (x ^ x) - x - 1


@triton.jit
def _bitwise_and(a, b):
    return a & b


@triton.jit
def _bitwise_or(a, b):
    return a | b


@triton.jit
def _bitwise_xor(a, b):
    return a ^ b


@triton.jit
def _left_shift(a, b):
    return a << b


@triton.jit
def _right_shift(a, b):
    return a >> b


def _ties(rng: np.random.Generator) -> list[Sample]:
    x = rng.integers(-2, 3, (4, 5)).astype(np.float64)
    return [Sample(x, x[::-1].copy()), Sample(np.array([np.nan, 1.0, np.inf, -0.0]), np.array([np.nan, np.nan, np.inf, 0.0]))]


def _whole(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.integers(-9, 9, (3, 5)), 3), Sample(rng.integers(0, 2, (7,)).astype(bool), rng.integers(0, 2, (7,)).astype(bool))]


def _shifts(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.integers(-99, 99, (3, 5)).astype(t), rng.integers(0, 7, (5,)).astype(t)) for t in (np.int8, np.int32, np.int64)]


def _extremes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]))]


_COMPARED: tuple[tuple[str, Any, Any, tuple[str, ...]], ...] = (
    ("eq", _eq, np.equal, _ANY), ("ne", _ne, np.not_equal, _ANY), ("lt", _lt, np.less, _REAL), ("le", _le, np.less_equal, _REAL),
    ("gt", _gt, np.greater, _REAL), ("ge", _ge, np.greater_equal, _REAL), ("logical_and", _logical_and, np.logical_and, _ANY),
    ("logical_or", _logical_or, np.logical_or, _ANY), ("logical_xor", _logical_xor, np.logical_xor, _ANY),
)  # fmt: skip
_TESTED: tuple[tuple[str, Any, Any], ...] = (
    ("logical_not", _logical_not, np.logical_not), ("isnan", _isnan, np.isnan), ("isinf", _isinf, np.isinf), ("isfinite", _isfinite, np.isfinite),
)  # fmt: skip
_COMBINED: tuple[tuple[str, Any, Any], ...] = (
    ("bitwise_and", _bitwise_and, np.bitwise_and), ("bitwise_or", _bitwise_or, np.bitwise_or), ("bitwise_xor", _bitwise_xor, np.bitwise_xor),
)  # fmt: skip
_SHIFTED: tuple[tuple[str, Any, Any], ...] = (
    ("bitwise_left_shift", _left_shift, np.left_shift), ("bitwise_right_shift", _right_shift, np.right_shift),
)  # fmt: skip


def _native(name: str) -> tuple[str, ...]:
    """Types of which machine code is faster than numpy, whose truth of a float goes number by number."""
    return FLOATS if name.startswith("logical") else formula_llvm.HALF_TYPES


for _name, _formula, _reference, _kinds in _COMPARED:
    elementwise(
        _name, _formula, None, _reference, promote="same", result="bool", kinds=_kinds, dtypes=_TYPES, extra=_ties, native=_native(_name)
    )
for _name, _formula, _reference in _TESTED:
    elementwise(
        _name, _formula, None, _reference, cpu=beside_gaps(np.isfinite) if _name == "isfinite" else None, promote="same", result="bool",
        kinds=_ANY, dtypes=_TYPES, extra=_extremes, native=_native(_name),
    )  # fmt: skip
for _name, _formula, _reference in _COMBINED:
    elementwise(_name, _formula, None, _reference, promote="same", kinds=_BITS, scalars=False, dtypes=("bool", *INTS), extra=_whole)
_NEAR = (Domain(-9.0, 9.0), Domain(0.4, 1.6))
for _name, _formula, _reference in _SHIFTED:
    elementwise(
        _name, _formula, None, _reference, promote="same", kinds=("uint", "int"), scalars=False, domain=_NEAR, dtypes=INTS, extra=_shifts
    )

_flip_bits = forward_of(_bitwise_not, "bitwise_not", ("x",), {}, "same")
_flip_truth = forward_of(_logical_not, "bitwise_not", ("x",), {}, "same")


def _bitwise_not_forward(x: CudaArray, **out: Any) -> CudaArray:
    """A bool's one bit flips; the kernel holds it in a byte."""
    return (_flip_truth if x.dtype == np.bool_ else _flip_bits)(x, **out)


elementwise(
    "bitwise_not", _bitwise_not, None, np.bitwise_not, promote="same", kinds=_BITS, dtypes=("bool", *INTS), forward=_bitwise_not_forward
)
