"""Parts of floating numbers: signs, neighbours, mantissa and exponent; and fmax and fmin, which ignore NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate_pair_result, allocate_result
from tritensor.kernels.parts.cpu.blocks import SILENT, beside_gaps, blocked_together
from tritensor.kernels.parts.cpu.float_conversions import is_half
from tritensor.kernels.parts.elementwise import elementwise, flat, run
from tritensor.kernels.parts.pointwise_samples import Domain, every_pair, few
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, op, ops, refuse_kind

_REAL = ("bool", "uint", "int", "float")
_TYPES = (*FLOATS, "int64", "uint8", "bool")


# |a| with the sign of b; the slope is that sign times a's: 0 at 0, NaN of NaN
@triton.jit
def _copysign(a, b):
    size = maths.abs(a)
    return maths.where(maths.signbit(b), -size, size)


@triton.jit
def _copysign_a(g, y, a):
    return g * maths.where(a == a, maths.sign(a) * maths.sign(y), a)


# the larger of a and b, the other one where one is NaN; a tie is a's
@triton.jit
def _fmax(a, b):
    return maths.where((a >= b) | (b != b), a, b)


@triton.jit
def _fmin(a, b):
    return maths.where((a <= b) | (b != b), a, b)


@triton.jit
def _fmax_a(g, a, b):
    return maths.where(maths.either(a >= b, b != b), g, maths.zeros(g))


@triton.jit
def _fmax_b(g, a, b):
    return maths.where(maths.either(a >= b, b != b), maths.zeros(g), g)


@triton.jit
def _fmin_a(g, a, b):
    return maths.where(maths.either(a <= b, b != b), g, maths.zeros(g))


@triton.jit
def _fmin_b(g, a, b):
    return maths.where(maths.either(a <= b, b != b), maths.zeros(g), g)


# the neighbour of a towards b, on bits: sign and size, where the next size is the next whole number
@triton.jit
def _next_bits(a, b, infinity, largest):
    size_a, size_b = a & largest, b & largest
    place_a, place_b = maths.where(a < 0, -size_a, size_a), maths.where(b < 0, -size_b, size_b)
    away = (place_b > place_a) == (a >= 0)
    stepped = maths.where(away, a + 1, a - 1)
    tiny = maths.where(b < 0, (b ^ size_b) | 1, (b ^ b) | 1)
    y = maths.where(size_a == 0, tiny, stepped)
    y = maths.where(place_a == place_b, b, y)
    y = maths.where(size_b > infinity, b, y)
    return maths.where(size_a > infinity, a, y)


# the names of nextafter's inputs; the work is done on their bits
@triton.jit
def _next(a, b):
    return _next_bits(a, b, 0, 0)


# dy/da = 1, at a = b, where y is b, 0; dy/db = 0
@triton.jit
def _next_a(g, a, b):
    return maths.where(a == b, maths.zeros(g), g)


_FEW = 4096  # elements of which numpy's own is as quick
_BITS: dict[int, np.dtype] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _infinity(dtype: np.dtype) -> tuple[int, int]:
    """Infinity's bits, and the mask of all bits but the sign's."""
    bits = _BITS[dtype.itemsize]
    return int(np.array(np.inf, dtype).view(bits)), int(np.iinfo(bits).max)


def _next_block(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The neighbour of a towards b by its bits: the next larger size is the next whole number. numpy's own goes element by element, two to three
    times as long; it takes the zeros and NaNs."""
    if a.size != out.size:
        a = np.full(out.shape, a)
    bits = _BITS[out.itemsize]
    whole, found = a.view(bits), out.view(bits)
    step = np.subtract(np.greater(b, a).view(np.int8), np.less(b, a).view(np.int8)).astype(bits)
    np.right_shift(whole, bits.type(8 * out.itemsize - 1), out=found)
    found |= bits.type(1)  # the sign of a
    found *= step
    found += whole
    odd = np.equal(a, 0)
    odd |= np.isnan(a)
    odd |= np.isnan(b)
    if odd.any():
        out[odd] = np.nextafter(*[np.broadcast_to(x, out.shape)[odd] for x in (a, b)])


_next_of_few = SILENT()(np.nextafter)  # which warns of a neighbour that is infinite
_next_of_many = blocked_together(_next_block)


def _nextafter_cpu(a: Any, b: Any, *, out: np.ndarray | None = None) -> Any:
    array = a if isinstance(a, np.ndarray) else b
    if is_half(array.dtype):  # of two zeros numpy gives the first there, C the second
        zeros = np.equal(a, 0) & np.equal(b, 0)
        found = _next_of_few(a, b, out=out) if not zeros.any() else np.where(zeros, b, _next_of_few(a, b)).astype(array.dtype)
        if out is not None and found is not out:
            out[...] = found
        return found if out is None else out
    if max(np.size(a), np.size(b)) <= _FEW:
        return _next_of_few(a, b, out=out)
    return _next_of_many(a, b, out=out)


def _nextafter_forward(a: Any, b: Any, *, out: CudaArray | None = None) -> CudaArray:
    out = allocate_pair_result("nextafter", a, b) if out is None else out
    bits = _BITS[out.dtype.itemsize]
    given = [x.view(bits) if isinstance(x, CudaArray) else int(np.array(x, out.dtype).view(bits)) for x in (a, b)]
    run((_next_bits,), ((0, 1, 2, 3),), (*given, *_infinity(out.dtype)), (out.view(bits),), bits)
    return out


_extremes = every_pair(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0)
_APART = (Domain(-2.0, 2.0, (0.0,), step=0.25), Domain(-1.875, 1.875, (0.0,), step=0.25))
_SIGNED = (Domain(-2.0, 2.0, (0.0,)), Domain(-2.0, 2.0, (0.0,)))
elementwise(
    "signbit",
    maths.signbit,
    None,
    np.signbit,
    cpu=beside_gaps(np.signbit),
    promote="same",
    result="bool",
    kinds=_REAL[1:],
    dtypes=_TYPES[:-1],
)
elementwise(
    "copysign", _copysign, (_copysign_a, flat), np.copysign, kinds=("float",), domain=_SIGNED, samples=few(*_SIGNED, extra=_extremes)
)
for _name, _formula, _gradients, _ufunc in (("fmax", _fmax, (_fmax_a, _fmax_b), np.fmax), ("fmin", _fmin, (_fmin_a, _fmin_b), np.fmin)):
    elementwise(
        _name,
        _formula,
        _gradients,
        _ufunc,
        promote="same",
        kinds=_REAL,
        domain=_APART,
        dtypes=_TYPES,
        samples=few(*_APART, extra=_extremes),
    )
elementwise(
    "nextafter", _next, (_next_a, flat), np.nextafter, cpu=_nextafter_cpu, promote="same", kinds=("float",), forward=_nextafter_forward,
    domain=_SIGNED, native=(), samples=few(*_SIGNED, extra=_extremes),
    dtypes=("float64",),  # the steps of a type are that type's alone: tests/tensor/test_special.py asks the others
)  # fmt: skip


# x = mantissa 2^exponent with 1/2 <= |mantissa| < 1; 0, infinities and NaN keep themselves as mantissa, with exponent 0
@triton.jit
def _scaled(x):
    """x times 2^64 where it is so small that its exponent's bits are 0."""
    return tl.where(tl.abs(x) < 1e-30, x * 18446744073709551616.0, x)


@triton.jit
def _plain(x):
    return (x == 0) | ((x - x) != 0)


@triton.jit
def _mantissa(x):
    if x.dtype == tl.float64:
        bits = _scaled(x).to(tl.int64, bitcast=True)
        y = ((bits & -9218868437227405313) | 4602678819172646912).to(tl.float64, bitcast=True)
    else:
        bits = _scaled(x).to(tl.int32, bitcast=True)
        y = ((bits & -2139095041) | 1056964608).to(tl.float32, bitcast=True)
    return tl.where(_plain(x), x, y)


@triton.jit
def _exponent(x):
    if x.dtype == tl.float64:
        e = ((_scaled(x).to(tl.int64, bitcast=True) >> 52) & 2047).to(tl.int32) - 1022
    else:
        e = ((_scaled(x).to(tl.int32, bitcast=True) >> 23) & 255) - 126
    return tl.where(_plain(x), 0, tl.where(tl.abs(x) < 1e-30, e - 64, e))


def _frexp_shape(x: Any) -> tuple[Spec, Spec]:
    refuse_kind("frexp", x.dtype, ("float",), "input")
    return Spec(x.shape, x.dtype), Spec(x.shape, np.dtype(np.int32))


def _frexp_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mantissa, exponent) with x = mantissa * 2^exponent."""
    m, e = np.frexp(x)
    return m, np.where(np.isfinite(x), e, 0)


def _frexp_forward(x: CudaArray) -> tuple[CudaArray, CudaArray]:
    m, e = (allocate_result((x,), x.shape, t) for t in (x.dtype, np.dtype(np.int32)))
    run((_mantissa, _exponent), ((0,), (0,)), (x,), (m, e), x.dtype)
    return m, e


def _frexp_rule(g: Any, exponent: Any) -> Any:
    return g[0] * ops.exp2(ops.cast(ops.neg(exponent), dtype=g[0]._array.dtype))


# dm/dx = 2^-exponent
@triton.jit
def _frexp_slope(g, e):
    return g * maths.exp2(-(e.to(tl.float64 if g.dtype == tl.float64 else tl.float32)))


def _frexp_backward(g: Any, exponent: CudaArray) -> CudaArray:
    out = allocate_result((g[0], exponent), g[0].shape, g[0].dtype)
    run((_frexp_slope,), ((0, 1),), (g[0], exponent), (out,), g[0].dtype)
    return out


def _frexp_samples(rng: np.random.Generator) -> list[Sample]:
    between = rng.choice([-1.0, 1.0], (3, 5)) * rng.uniform(1.1, 1.9, (3, 5)) * 2.0 ** rng.integers(-3, 3, (3, 5))
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -0.5, 1e-38, 1e-42, 3e4])
    return [Sample(between), Sample(np.array(1.5)), Sample(rng.uniform(1.1, 1.9, (135,))), Sample(odd, smooth=False)]


op(
    "frexp", _frexp_reference, shape=_frexp_shape, forward=_frexp_forward, rule=_frexp_rule, backward=_frexp_backward,
    cpu_backward=lambda g, exponent: g[0] * np.ldexp(np.ones((), g[0].dtype), -exponent),
    outputs=("mantissa", "exponent"), layout="elementwise", samples=_frexp_samples,
)  # fmt: skip
