"""The machine code of kernels' scalar mathematics: how division and roots round, and that subnormal float32 numbers stay."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.stub.child import on_stub
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.compiler.compile import compile
from tritensor.ground.device import device
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.backends import on_numpy
from tritensor.ops.array import empty
from tritensor.testing import check_kernel


@triton.jit
def _apply(x, y, function: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(y + i, function(tl.load(x + i), tl.load(y + i)))


@triton.jit
def _div(a, b):
    return maths.div(a, b)


@triton.jit
def _sqrt(a, b):
    return maths.sqrt(a)


@triton.jit
def _rsqrt(a, b):
    return maths.rsqrt(a)


@triton.jit
def _exp(a, b):
    return maths.exp(a)


@triton.jit
def _log(a, b):
    return maths.log(a)


@triton.jit
def _log1p(a, b):
    return maths.log1p(a)


@triton.jit
def _sigmoid(a, b):
    return maths.sigmoid(a)


@triton.jit
def _one_over(a, b):
    return maths.div(1.0, b)


@triton.jit
def _ninth(a, b):
    return maths.div(a, 9)


@triton.jit
def _third_power(a, b):
    return maths.pow(a, 3)


def _instructions(function: Any, dtype: Any) -> set[str]:
    """The PTX instructions of a function of two numbers that have one way of rounding and flushing, or another."""
    x = empty((128,), np.dtype(dtype), device("cuda", 0))
    spec = specialize(LaunchCall(_apply, (1,), (x, x), {"function": function}, num_stages=1))[0]
    return set(re.findall(r"^\s*((?:\w+\.\S*ftz|div|sqrt|rsqrt)\S*)", compile(spec, 90).asm["ptx"], re.M))


@on_stub()
def test_division_and_roots() -> None:
    for dtype, bits in ((np.float32, 32), (np.float64, 64)):
        assert _instructions(_div, dtype) == {f"div.rn.f{bits}"}
        assert _instructions(_sqrt, dtype) == {f"sqrt.rn.f{bits}"}
        assert _instructions(_rsqrt, dtype) == {f"rsqrt.approx.f{bits}"}


@on_stub()
def test_a_number_takes_the_type_of_what_it_meets() -> None:
    for dtype, bits in ((np.float32, 32), (np.float64, 64)):
        for function in (_one_over, _ninth):
            assert _instructions(function, dtype) == {f"div.rn.f{bits}"}


def test_one_operand_may_be_a_number() -> None:
    for dtype in (np.float32, np.float64):
        x = np.linspace(0.5, 3, 128).astype(dtype)
        for function, expected in ((_one_over, 1 / x), (_ninth, x / 9), (_third_power, x**3)):
            check_kernel(_apply, (1,), (x, x.copy()), {"y": expected}, updates=["y"], function=function)


@on_stub()
def test_subnormal_numbers_are_not_taken_for_zero() -> None:
    for function in (_exp, _log, _log1p, _sigmoid):
        flushing = {i for i in _instructions(function, np.float32) if "ftz" in i}
        assert flushing <= {"ex2.approx.ftz.f32"}, "exp scales what it gives to that, and the result back"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_rounding_takes_from_a_square(dtype: type) -> None:
    x = np.random.default_rng(1).uniform(0.1, 30, 400).astype(dtype)
    want = [float(Fraction(float(v)) ** 2 - Fraction(float(v * v))) for v in x]  # exact
    np.testing.assert_array_equal(on_numpy.square_rest(x), np.asarray(want, dtype))
