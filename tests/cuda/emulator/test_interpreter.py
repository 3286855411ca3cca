"""The corrected interpreter: 16-bit floats, casts, fma, umulhi, library functions, reductions, arguments of every kind."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.loops import each
from tritensor.cuda.emulator.instructions.arithmetic import to_integer
from tritensor.cuda.emulator.instructions.libdevice import stand_in
from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import LaunchError
from tritensor.ops.array import empty, empty_like, from_host, to_host

GPU = device("cuda", 0)
BF16 = np.dtype(ml_dtypes.bfloat16)
KERNEL_TYPES = [d for d in dtypes.ALL if d.triton]


@triton.jit
def cast_all(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=i < n)


@triton.jit
def arithmetic(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(z + i, a * b + a, mask=i < n)


@triton.jit
def fused(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.fma(tl.load(x + i, mask=m), tl.load(y + i, mask=m), tl.load(z + i, mask=m)), mask=m)


@triton.jit
def high_half(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.umulhi(tl.load(x + i, mask=m), tl.load(y + i, mask=m)), mask=m)


@triton.jit
def _of_libdevice(x):
    return libdevice.tanh(x) + libdevice.erfc(x) + libdevice.pow(x, x) + libdevice.expm1(x) + libdevice.log1p(libdevice.fmod(x, x * 0.75))


@triton.jit
def _of_language(x):
    return tl.exp(x) + tl.log(x) + tl.sin(x) * tl.cos(x) + tl.sqrt(x) + tl.rsqrt(x) + tl.erf(x) + tl.floor(x) + tl.ceil(x)


@triton.jit
def _rounded(x):
    return tl.div_rn(x, x + 3.0) + tl.sqrt_rn(x)  # Triton has these for float32 alone


@triton.jit
def apply(x, y, n, formula: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, formula(tl.load(x + i, mask=i < n, other=1.0)), mask=i < n)


@triton.jit
def no_stand_in(x):
    tl.store(x, libdevice.rcp64h(tl.load(x).to(tl.float64)).to(tl.float32))


@triton.jit
def _greater(a, i, b, j):
    better = (b > a) | ((b == a) & (j < i))
    return tl.where(better, b, a), tl.where(better, j, i)


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reductions(x, sums, best, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = tl.arange(0, ROWS)
    j = tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + i[:, None] * n + j, mask=(j < n) & (i[:, None] < ROWS), other=-float("inf"))
    tl.store(sums + i, tl.sum(tl.where(j < n, v, 0.0), axis=1))
    _, at = tl.reduce((v, tl.broadcast_to(j, v.shape)), 1, _greater)
    tl.store(best + i, at)


@triton.jit
def scan_affine(a, b, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _, s = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, _affine)
    tl.store(y + i, s)


@triton.jit
def extremes(x, y, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(y, tl.max(v, 0))
    tl.store(y + 1, tl.min(v, 0))


@triton.jit
def arguments(y, flag, small, exact, single, wide: tl.int64, nothing, pair, mode: tl.constexpr):
    v = exact * 2
    if flag:
        v += pair[0] + pair[1][0]
    if nothing is None:
        v += 1000
    if mode == "negate":
        v = -v
    tl.store(y, v)
    tl.store(y + 1, single.to(tl.float64))
    tl.store(y + 2, (wide * wide).to(tl.float64))
    tl.store(y + 3, small.to(tl.float64))


@triton.jit
def product(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = i[:, None] * BLOCK + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p), input_precision="ieee"))


@triton.jit
def loop_over_argument(y, n):
    s = 0
    for k in range(0, n, 3):
        s += k
    tl.store(y, s)


@each(("source", "to"), [(source, to) for source in KERNEL_TYPES for to in KERNEL_TYPES], ids=lambda d: d.name)
def test_casts_round_to_nearest_even(source: dtypes.DType, to: dtypes.DType) -> None:
    if "float8" in (source.kind, to.kind) and not (source.is_floating_point and to.is_floating_point):
        return  # Triton itself has no cast between integers and float8
    x = np.array([0, 1, 2, 3.3, 7.7, 1.00390625, 1.01171875, 1e-6, 100]).astype(source.numpy)
    y = empty(x.shape, to.numpy, GPU)
    launch(cast_all, (1,), from_host(x, GPU), y, x.size, BLOCK=16)
    assert (to_host(y) == x.astype(to.numpy)).all()


def test_bfloat16_ties_infinities_and_nan() -> None:
    x = np.array([1.00390625, 1.01171875, np.inf, -np.inf, np.nan, 3.4e38, -0.0], np.float32)
    y = empty(x.shape, BF16, GPU)
    launch(cast_all, (1,), from_host(x, GPU), y, x.size, BLOCK=8)
    assert np.array_equal(
        to_host(y).astype(np.float32), np.array([1.0, 1.015625, np.inf, -np.inf, np.nan, np.inf, -0.0], np.float32), equal_nan=True
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_arithmetic_in_every_float(dtype: type) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(11).astype(dtype) for _ in range(2))
    z = empty((11,), np.dtype(dtype), GPU)
    launch(arithmetic, (1,), from_host(x, GPU), from_host(y, GPU), z, 11, BLOCK=16)
    assert (to_host(z) == x * y + x).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_rounds_once(dtype: type) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(50).astype(dtype) for _ in range(2))
    z = (-x * y).astype(dtype)  # cancellation leaves what a first rounding would lose
    out = empty((50,), np.dtype(dtype), GPU)
    launch(fused, (1,), from_host(x, GPU), from_host(y, GPU), from_host(z, GPU), out, 50, BLOCK=64)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z, strict=True)]
    assert (to_host(out) == np.array([float(e) for e in exact]).astype(dtype)).all()


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_umulhi(dtype: type) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    x, y = (np.concatenate([rng.integers(info.min, info.max, 30, dtype), np.array([info.max, info.min], dtype)]) for _ in range(2))
    out = empty((32,), np.dtype(dtype), GPU)
    launch(high_half, (1,), from_host(x, GPU), from_host(y, GPU), out, 32, BLOCK=32)
    want = [((int(a) % 2**info.bits) * (int(b) % 2**info.bits)) >> info.bits for a, b in zip(x, y, strict=True)]
    assert [int(v) % 2**info.bits for v in to_host(out)] == want


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_library_functions(dtype: type) -> None:
    x = np.linspace(0.05, 3, 13).astype(dtype)
    f = x.astype(np.float64)
    want = np.tanh(f) + np.vectorize(math.erfc)(f) + f**f + np.expm1(f) + np.log1p(np.fmod(f, f * 0.75))
    y = empty_like(from_host(x, GPU))
    launch(apply, (1,), from_host(x, GPU), y, 13, formula=_of_libdevice, BLOCK=16)
    assert np.allclose(to_host(y), want, rtol=20 * np.finfo(dtype).eps)
    want = (
        np.exp(f) + np.log(f) + np.sin(f) * np.cos(f) + np.sqrt(f) + 1 / np.sqrt(f) + np.vectorize(math.erf)(f) + np.floor(f) + np.ceil(f)
    )
    launch(apply, (1,), from_host(x, GPU), y, 13, formula=_of_language, BLOCK=16)
    assert np.allclose(to_host(y), want, rtol=20 * np.finfo(dtype).eps)


def test_correctly_rounded_division_and_root() -> None:
    x = np.linspace(0.05, 3, 13).astype(np.float32)
    y = empty_like(from_host(x, GPU))
    launch(apply, (1,), from_host(x, GPU), y, 13, formula=_rounded, BLOCK=16)
    assert (to_host(y) == x / (x + np.float32(3)) + np.sqrt(x)).all()


def test_a_missing_library_function_is_named() -> None:
    with pytest.raises(LaunchError, match=r"no_stand_in: program .*__nv_rcp64h has no numpy stand-in"):
        launch(no_stand_in, (1,), from_host(np.ones(1, np.float32), GPU))


def test_reductions_with_a_combine_function() -> None:
    x = np.random.default_rng(4).standard_normal((4, 37)).astype(np.float32)
    x[1, 5] = x[1, 9] = 9.0
    sums, best = empty((4,), np.dtype(np.float32), GPU), empty((4,), np.dtype(np.int64), GPU)
    launch(reductions, (1,), from_host(x, GPU), sums, best, 37, BLOCK=64, ROWS=4)
    assert np.allclose(to_host(sums), x.sum(1), rtol=1e-5)
    assert (to_host(best) == x.argmax(1)).all()


def test_scan_with_a_combine_function() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.uniform(0.5, 1, 32) for _ in range(2))
    want, s = [], 0.0
    for p, q in zip(a, b, strict=True):
        s = s * p + q
        want.append(s)
    y = empty((32,), np.dtype(np.float64), GPU)
    launch(scan_affine, (1,), from_host(a, GPU), from_host(b, GPU), y, BLOCK=32)
    assert np.allclose(to_host(y), want, rtol=1e-12)


def test_maximum_and_minimum_drop_nan_as_the_gpu_does() -> None:
    y = empty((2,), np.dtype(np.float32), GPU)
    launch(extremes, (1,), from_host(np.array([1, np.nan, 3, 2], np.float32), GPU), y, BLOCK=4)
    assert to_host(y).tolist() == [3, 1]


def test_arguments_of_every_kind() -> None:
    y = empty((4,), np.dtype(np.float64), GPU)
    launch(arguments, (1,), y, True, np.int8(-3), np.float64(0.1), 0.1, 2**20, None, (5, (np.float64(0.25),)), mode="negate")
    assert to_host(y).tolist() == [-(0.1 * 2 + 5.25 + 1000), float(np.float32(0.1)), 2.0**40, -3.0]
    launch(arguments, (1,), y, False, np.int8(7), np.float64(0.1), 0.1, 2**20, 1, (5, (np.float64(0.25),)), "keep")
    assert to_host(y).tolist()[0] == 0.2


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn])
def test_products_accumulate_in_float32(dtype: type) -> None:
    a = np.random.default_rng(6).standard_normal((16, 16)).astype(dtype)
    c = empty((16, 16), np.dtype(np.float32), GPU)
    launch(product, (1,), from_host(a, GPU), from_host(a, GPU), c, BLOCK=16)
    assert np.allclose(to_host(c), a.astype(np.float64) @ a.astype(np.float64), atol=1e-5)


def test_range_over_an_argument() -> None:
    y = empty((1,), np.dtype(np.int32), GPU)
    launch(loop_over_argument, (1,), y, 13)
    assert to_host(y) == [sum(range(0, 13, 3))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directed_roundings_lie_on_their_side(dtype: type) -> None:
    """Of the exact value: one of its two neighbours, or the value itself, which 3 * 0.5 and sqrt(9) are."""
    rng = np.random.default_rng(3)
    x, y, z = (np.concatenate([rng.standard_normal(40) ** 3 * 10.0 ** rng.integers(-9, 9, 40), [3.0]]).astype(dtype) for _ in range(3))
    letter = "f" if dtype is np.float32 else "d"
    fused = "fmaf" if dtype is np.float32 else "fma"
    exact = {
        f"{letter}add": (lambda a, b, _: a + b, 2), f"{letter}mul": (lambda a, b, _: a * b, 2), f"{letter}div": (lambda a, b, _: a / b, 2),
        f"{letter}rcp": (lambda a, _, __: 1 / a, 1), fused: (lambda a, b, c: a * b + c, 3),
    }  # fmt: skip
    for name, (function, count) in exact.items():
        want = [function(*map(Fraction, map(float, v))) for v in zip(x, y, z, strict=True)]
        down, up, cut = (stand_in(f"__nv_{name}_{mode}", (x, y, z)[:count]) for mode in ("rd", "ru", "rz"))
        assert down.dtype == dtype
        for low, high, inner, value in zip(down, up, cut, want, strict=True):
            assert Fraction(float(low)) <= value <= Fraction(float(high)), name
            assert high == (low if Fraction(float(low)) == value else np.nextafter(low, dtype(np.inf))), name
            assert inner == (low if value > 0 else high), name
    roots = stand_in(f"__nv_{letter}sqrt_rd", [np.array([2.0, 9.0, np.inf], dtype)])
    assert Fraction(float(roots[0])) ** 2 < 2 < Fraction(float(np.nextafter(roots[0], dtype(2)))) ** 2
    assert roots[1:].tolist() == [3.0, np.inf]
    biggest = np.finfo(dtype).max
    assert stand_in(f"__nv_{letter}mul_rz", [np.array([biggest]), np.array([-2.0], dtype)])[0] == -biggest


def test_nan_as_an_integer_depends_on_the_width() -> None:
    nan, small = np.array([np.nan]), np.array([np.nan], np.float32)
    assert to_integer(small, np.dtype(np.int32))[0] == 0
    assert to_integer(nan, np.dtype(np.int32))[0] == -(2**31)
    assert to_integer(small, np.dtype(np.int64))[0] == -(2**63)
    assert to_integer(nan, np.dtype(np.uint64))[0] == 2**63
    assert stand_in("__nv_float2int_rn", [small])[0] == 0
