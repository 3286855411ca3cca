"""Powers, remainders and rounded quotients, each with a formula of floats and one of integers."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DivisionByZeroError
from tritensor.kernels.elementwise.arithmetic import ANY, reciprocal, square, square_grad
from tritensor.kernels.parts import backends, formula_llvm, maths
from tritensor.kernels.parts.allocation import allocate_pair_result
from tritensor.kernels.parts.cpu.blocks import in_expression, of_ufunc
from tritensor.kernels.parts.cpu.complex_functions import complex_power
from tritensor.kernels.parts.cpu.float_conversions import as_float32, converted
from tritensor.kernels.parts.elementwise import backward_of, elementwise, flat, run, unchanged
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, ops

_TYPES = (*FLOATS, "int32", "int64", "uint8")
_REAL = ("uint", "int", "float")


# y = a^b
@triton.jit
def _integer_pow(a, b):
    """Square and multiply, wrapping as integers do; a negative exponent gives 0, but 1 or -1 for a base of 1 or -1."""
    zero = a * 0 + b * 0  # of the type of both: a number is one of its own width
    one = (zero + 1).to(zero.dtype)
    result = one
    base = (a + zero).to(zero.dtype)
    left = (b + zero).to(zero.dtype)
    for _ in range(64):
        result = tl.where((left & 1) != 0, result * base, result).to(zero.dtype)
        base = (base * base).to(zero.dtype)
        left = (left >> 1).to(zero.dtype)
    minus = (zero - 1).to(zero.dtype)
    odd = tl.where(((b + zero) & 1) != 0, a + zero, one).to(zero.dtype)
    return tl.where(b < 0, tl.where((a == one) | (a == minus), odd, zero), result)


@triton.jit
def _bool_pow(a, b):
    return (a != 0) | (b == 0)


# exponents that have an exact or much cheaper way
@triton.jit
def _cubed(a):
    return a * a * a


def _cube(a: np.ndarray, out: np.ndarray | None) -> Any:
    y = np.asarray(np.multiply(a, a))
    return np.multiply(y, a, out=y if out is None else out)


def _inverse_root_numpy(a: np.ndarray, out: np.ndarray | None) -> Any:
    return np.divide(a.dtype.type(1), np.sqrt(a), out=out)


_SHORT: dict[float, tuple[Any, Callable[..., Any], bool]] = {  # exponent: kernel, numpy, whether integers may take it
    1: (unchanged, lambda a, out: np.positive(a, out=out), True),
    2: (square, lambda a, out: np.multiply(a, a, out=out), True),
    3: (_cubed, _cube, True),
    0.5: (maths.sqrt, lambda a, out: np.sqrt(a, out=out), False),
    -0.5: (maths.rsqrt, _inverse_root_numpy, False),
    -1: (reciprocal, lambda a, out: np.divide(a.dtype.type(1), a, out=out), False),
}


def _short(a: Any, b: Any) -> tuple[Any, Callable[..., Any], bool] | None:
    """The cheap way of an exponent, where there is one for this type."""
    if type(b) not in (int, float):
        return None
    found = _SHORT.get(b)
    return found if found is not None and (found[2] or dtypes.is_float(a.dtype)) else None


_real_pow = formula_llvm.with_machine_code(
    of_ufunc(np.power, ("a", "b")), formula_llvm.formula_loop(maths.pow), ("float16", "bfloat16", "float32")
)


def _refuse_fraction(a: Any, b: Any) -> None:
    if type(b) is int and b < 0 and a.dtype.kind in "iu":
        raise ArgumentError(
            f"pow: {a.dtype} to the power {b}: the results are fractions, which integers cannot hold; convert with .float() first"
        )


def _pow_reference(a: Any, b: Any) -> Any:
    """a to the power b. Integers to a negative integer power raise ValueError."""
    _refuse_fraction(a, b)
    if np.result_type(a, b).kind == "b":
        return np.greater_equal(a, b)
    if np.result_type(a, b).kind != "i":
        return np.power(a, b)
    ones = np.where(np.abs(a) == 1, np.where(b % 2 == 0, 1, a), 0)  # 1 / a, which is whole of 1 and -1 alone
    return np.where(b < 0, ones, np.power(a, np.maximum(b, 0)))


def _pow_cpu(a: Any, b: Any, *, out: np.ndarray | None = None) -> Any:
    _refuse_fraction(a, b)
    kind = (a if isinstance(a, np.ndarray) else b).dtype.kind
    if kind == "b":
        return np.greater_equal(a, b, out=out)
    way = _short(a, b)
    if way is not None and (kind in "iuc" or a.itemsize > 2):
        return way[1](a, out)
    if way is not None:
        y = converted(way[1](as_float32(a), None), a.dtype)  # several roundings in 16 bits otherwise
    elif kind == "c":
        return complex_power(a, b, out)
    elif isinstance(b, np.ndarray) and b.dtype.kind == "i" and b.size and np.minimum.reduce(b, axis=None) < 0:
        y = _pow_reference(a, b).astype(b.dtype, copy=False)  # numpy refuses negative powers of integers
    else:
        return _real_pow(a, b, out=out)
    if out is None:
        return y
    out[...] = y
    return out


def _pow_forward(a: Any, b: Any, *, out: CudaArray | None = None) -> CudaArray:
    _refuse_fraction(a, b)
    out = allocate_pair_result("pow", a, b) if out is None else out
    kind = (a if isinstance(a, CudaArray) else b).dtype
    way = _short(a, b)
    if kind.kind == "b":
        run((_bool_pow,), ((0, 1),), (a, b), (out,), kind)
    elif way is not None:
        run((way[0],), ((0,),), (a,), (out,), kind)
    else:
        run((maths.pow if dtypes.is_float(kind) else _integer_pow,), ((0, 1),), (a, b), (out,), kind)
    return out


# dy/da = b a^(b - 1), 0 where b is 0 whatever a and g are; dy/db = y log(a), 0 where a is 0 and b not negative
@triton.jit
def _pow_a(g, a, b):
    return maths.chain(maths.tame(b, g), maths.chain(b, maths.pow(a, b - 1.0)))


@triton.jit
def _pow_b(g, y, a, b):
    return maths.where(maths.both(a == 0, b >= 0), maths.zeros(g), maths.chain(g, y * maths.log(a)))


_pow_a_kernel, _pow_b_kernel, _square_kernel = (backward_of((f,))[0] for f in (_pow_a, _pow_b, square_grad))
_pow_a_numpy, _pow_b_numpy, _square_numpy = (formula_llvm.numpy_gradient(f, False) for f in (_pow_a, _pow_b, square_grad))
_pow_a_rule, _pow_b_real = (backends.translate(f, backends.on_tensors) for f in (_pow_a, _pow_b))


def _pow_b_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    """The same for complex numbers, of whose exponent the real part decides."""
    if g._array.dtype.kind != "c":
        return _pow_b_real(g, y, a, b)
    logarithm = ops.log(a) if hasattr(a, "_array") else cmath.log(a) if a else complex(-math.inf)
    flat = ops.logical_and(ops.eq(y * 0 + a, 0), ops.ge(ops.real(y * 0 + b), 0))
    return ops.where(flat, 0.0, backends.on_tensors.chain(g, y * logarithm))


def _pow_a_backward(g: CudaArray, a: CudaArray, b: Any) -> CudaArray:
    return _square_kernel(g, a) if type(b) in (int, float) and b == 2 else _pow_a_kernel(g, a, b)


def _pow_a_cpu_backward(g: np.ndarray, a: np.ndarray, b: Any) -> Any:
    if type(b) in (int, float) and b == 2:
        return _square_numpy(g, a)
    # By a number, where the formula's care for exponents of 0 and for infinite ones is not needed.
    if type(b) in (int, float) and b and math.isfinite(b) and g.dtype.char in "fd" and g.size < formula_llvm.MANY:
        return backends.on_numpy.chain(g, np.power(a, b - 1.0) * b)
    return _pow_a_numpy(g, a, b)


def _pow_samples(rng: np.random.Generator) -> list[Sample]:
    base = rng.uniform(0.3, 2.5, (3, 5))
    signed = rng.uniform(-2.5, 2.5, (7,))
    signed = np.where(np.abs(signed) < 0.3, 0.5, signed)
    special = Sample(
        np.array([0.0, 0.0, 0.0, -1.0, np.nan, 1.0, np.inf, 4.0]), np.array([0.0, 2.0, -1.0, 0.5, 0.0, np.nan, -1.0, 0.5]), smooth=False
    )
    whole = Sample(rng.integers(-5, 6, (4, 5)), rng.integers(0, 7, (5,)))
    short = [Sample(base, e) for e in (1, 2, 3, 0.5, -0.5, -1.0, 1.7, 0)]
    truths = np.array([False, True])
    return [
        *short, Sample(signed, 2), Sample(signed, 3.0), Sample(np.array([0.0, -0.0, 1.5]), 2.0), special, whole, Sample(rng.integers(-5, 6, (9,)), 4),
        Sample(np.repeat(truths, 2), np.tile(truths, 2)), Sample(truths, True), Sample(truths, False),
        Sample(np.array([-2, -1, -1, 0, 1, 3]), np.array([-1, -1, -2, 2, -3, -2])),
    ]  # fmt: skip


elementwise(
    "pow", maths.pow, (_pow_a, _pow_b), _pow_reference, cpu=_pow_cpu, promote="same", kinds=ANY, native=(), forward=_pow_forward,
    rule=(_pow_a_rule, _pow_b_rule), backward=(_pow_a_backward, _pow_b_kernel),
    cpu_backward=(_pow_a_cpu_backward, _pow_b_numpy), domain=(Domain(0.3, 2.5), Domain(-1.5, 1.5)),
    extra=_pow_samples,
)  # fmt: skip


# r = a - floor(a / b) b: the sign of b, a zero that of a
@triton.jit
def _remainder(a, b):
    r = maths.fmod(a, b)
    return maths.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def _remainder_b(g, a, b):
    return -g * maths.floor_quotient(a, b)


# r = a - trunc(a / b) b: the sign of a
@triton.jit
def _fmod_b(g, a, b):
    return -g * maths.trunc_divide(a, b)


# of integers Triton's % and // go towards 0
@triton.jit
def _integer_remainder(a, b):
    r = a % b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def _integer_fmod(a, b):
    return a % b


@triton.jit
def _integer_floor_divide(a, b):
    r = a % b
    q = a // b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)


@triton.jit
def _integer_trunc_divide(a, b):
    return a // b


def _of_kind(name: str, floating: Any, whole: Any) -> Callable[..., CudaArray]:
    """The forward corner of an op with one formula for floats and another for integers."""

    def forward(a: Any, b: Any, *, out: CudaArray | None = None) -> CudaArray:
        out = allocate_pair_result(name, a, b) if out is None else out
        kind = (a if isinstance(a, CudaArray) else b).dtype
        run((floating if dtypes.is_float(kind) else whole,), ((0, 1),), (a, b), (out,), kind)
        return out

    return forward


def _quotient(a: Any, b: Any) -> Any:
    """a / b without its fraction."""
    if np.result_type(a, b).kind == "f":
        return np.trunc(a / b)
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _whole_quotient(a: Any, b: Any, out: np.ndarray | None = None) -> Any:
    """The same of integers: floor, and one more where that is below and not exact."""
    q = np.asarray(np.floor_divide(a, b, out=out))
    np.add(q, (q < 0) & (q * b != a), out=q)
    return q


def _by_kind(name: str, floating: Callable[..., Any], whole: Callable[..., Any]) -> Callable[..., Any]:
    """The CPU's side of a quotient or remainder: integers divided by 0 raise, as in Python and PyTorch, where any are."""
    floats = in_expression(floating)

    def cpu(a: Any, b: Any, *, out: np.ndarray | None = None) -> Any:
        kind = (a if isinstance(a, np.ndarray) else b).dtype.kind
        if kind not in "biu":
            return floats(a, b, out=out)
        if kind != "b" and not np.all(b) and np.broadcast(a, b).size:
            raise DivisionByZeroError(f"{name}: integer division by zero; b holds a 0; divide floats, or take the zeros out")
        return whole(a, b, out=out)

    # a fused group would not look for the zeros
    cpu.refuses = lambda a, b: (a if hasattr(a, "dtype") else b).dtype.kind in "iu"  # type: ignore[attr-defined]
    return cpu


def _whole_numbers(rng: np.random.Generator) -> list[Sample]:
    a = rng.integers(-9, 10, (4, 5))
    b = np.where((b := rng.integers(-4, 5, (4, 5))) == 0, 3, b)
    exact = Sample(np.array([6.0, -6.0, 1.0, -1.0, 7.5]), np.array([0.125, 0.125, np.inf, np.inf, -2.5]), smooth=False)
    return [Sample(a, b), Sample(a, 3), Sample(a.astype(np.int32), -4), exact]


def _apart(rng: np.random.Generator) -> list[Sample]:
    """a / b well between whole numbers, where remainders are smooth."""
    b = rng.uniform(0.5, 2.0, (3, 5)) * rng.choice([-1.0, 1.0], (3, 5))
    a = (rng.integers(-3, 3, (3, 5)) + rng.uniform(0.3, 0.7, (3, 5))) * b
    return [Sample(a, b), Sample(np.array([0.4, 1.7, -0.6, -2.3]), 1.1), *_whole_numbers(rng)]


_AWAY = (Domain(0.2, 0.6), Domain(0.8, 1.6))
for _name, _formula, _whole, _ufunc, _floating, _second in (
    (
        "remainder",
        _remainder,
        _integer_remainder,
        np.remainder,
        backends.in_numpy(_remainder),
        _remainder_b,
    ),  # a zero has the sign of a, as in PyTorch
    ("fmod", maths.fmod, _integer_fmod, np.fmod, np.fmod, _fmod_b),
):
    elementwise(
        _name, _formula, (unchanged, _second), _ufunc, cpu=_by_kind(_name, _floating, _ufunc), promote="same", kinds=_REAL,
        forward=_of_kind(_name, _formula, _whole), domain=_AWAY, dtypes=FLOATS, extra=_apart,
    )  # fmt: skip
for _name, _formula, _whole, _reference, _floating, _integers in (
    ("floor_divide", maths.floor_divide, _integer_floor_divide, np.floor_divide, np.floor_divide, np.floor_divide),
    ("trunc_divide", maths.trunc_divide, _integer_trunc_divide, _quotient, backends.in_numpy(maths.trunc_divide), _whole_quotient),
):
    elementwise(
        _name, _formula, (flat, flat), _reference, cpu=_by_kind(_name, _floating, _integers), promote="same", kinds=_REAL,
        forward=_of_kind(_name, _formula, _whole), domain=_AWAY, dtypes=_TYPES, extra=_whole_numbers,
    )  # fmt: skip
