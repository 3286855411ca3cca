"""The accuracy promises, measured against float64 (float32 and 16-bit) over wide ranges, on every device."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "emulated", pytest.param("gpu", marks=pytest.mark.gpu)]
BF16 = np.dtype(ml_dtypes.bfloat16)
SIXTEEN = [pytest.param(np.dtype(np.float16), id="float16"), pytest.param(BF16, id="bfloat16")]


def on(device: str, *arrays: np.ndarray) -> list[tt.Tensor]:
    where = "cpu" if device == "cpu" else "cuda"
    return [tt.from_numpy(a).to(where) for a in arrays]


def count(device: str) -> int:
    """How many points to measure: the interpreter is slow."""
    return 3_000 if device == "emulated" else 200_000


def values(low: float, high: float, n: int, seed: int = 0) -> np.ndarray:
    """Points of [low, high], half of them evenly spread and half by magnitude; both signs where the range has them."""
    rng = np.random.default_rng(seed)
    even = rng.uniform(low, high, n // 2)
    top = max(abs(low), abs(high))
    small = 10.0 ** rng.uniform(-6, np.log10(top), n - n // 2)
    signed = np.where(rng.random(small.shape) < 0.5, -small, small) if low < 0 else small
    return np.concatenate([even, np.clip(signed, low, high)])


def ulps(got: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of the result's type, at the truth rounded to it."""
    rounded = truth.astype(got.dtype)
    if got.dtype == np.float32 or got.dtype == np.float64 or got.dtype == np.float16:
        step = np.spacing(np.abs(rounded)).astype(np.float64)
    else:
        info = ml_dtypes.finfo(got.dtype)
        exponent = np.floor(np.log2(np.maximum(np.abs(truth), float(info.smallest_normal))))
        step = 2.0 ** (exponent - info.nmant)
    return np.abs(got.astype(np.float64) - truth) / step


# exact: the arithmetic of the hardware, correctly rounded
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
UNARY = {"sqrt": np.sqrt, "abs": np.abs, "neg": np.negative, "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*BINARY, *COMPARE])
def test_exact_binary(name: str, dtype: type, device: str) -> None:
    n = count(device)
    a, b = values(-1e3, 1e3, n, 1).astype(dtype), values(-1e3, 1e3, n, 2).astype(dtype)
    b[: n // 8] = a[: n // 8]
    x, y = on(device, a, b)
    got = getattr(tt, name)(x, y).cpu().numpy()
    np.testing.assert_array_equal(got, {**BINARY, **COMPARE}[name](a, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(UNARY))
def test_exact_unary(name: str, dtype: type, device: str) -> None:
    a = values(0 if name == "sqrt" else -1e4, 1e4, count(device)).astype(dtype)
    a[:9] = [0.0, 0.5, 1.5, 2.5, 3.5, 4.0, 1e-30, 7e8, 1e30]
    (x,) = on(device, a)
    np.testing.assert_array_equal(getattr(tt, name)(x).cpu().numpy(), UNARY[name](a))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", SIXTEEN)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_sixteen_bit_arithmetic_rounds_once(name: str, dtype: np.dtype, device: str) -> None:
    n = count(device)
    a, b = values(-100, 100, n, 1).astype(dtype), values(-100, 100, n, 2).astype(dtype)
    x, y = on(device, a, b)
    with np.errstate(over="ignore"):
        want = BINARY[name](a.astype(np.float32), b.astype(np.float32)).astype(dtype)
        got = getattr(tt, name)(x, y).cpu().numpy()
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BF16])
@pytest.mark.parametrize(
    "target", [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BF16, np.dtype(np.int32), np.dtype(np.int64)]
)
def test_casts_round_to_nearest_even(source: np.dtype, target: np.dtype, device: str) -> None:
    a = values(-6e4, 6e4, count(device)).astype(source)
    ties = 1 + np.arange(64) / 64 * 2.0**-7 + 2.0**-8  # halfway between bfloat16 neighbours, and between float16 ones
    a[:64] = ties.astype(source)
    a[64:128] = (1 + np.arange(64) * 2.0**-10 + 2.0**-11).astype(source)
    if target.kind in "fV" and source.kind in "fV":
        a[128:131] = np.array([np.inf, -np.inf, np.nan]).astype(source)
    (x,) = on(device, a)
    got = x.to(target).cpu().numpy()
    want = a.astype(target)
    keep = ~np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(got[keep].astype(np.float64), want[keep].astype(np.float64))
    assert np.isnan(got[~keep].astype(np.float64)).all()


# float32 transcendentals: 4 units in the last place
def _erf(x: np.ndarray) -> np.ndarray:
    import math

    return np.frompyfunc(math.erf, 1, 1)(x).astype(np.float64)


def _erfc(x: np.ndarray) -> np.ndarray:
    import math

    return np.frompyfunc(math.erfc, 1, 1)(x).astype(np.float64)


TRANSCENDENTAL: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -120, 120),
    "expm1": (np.expm1, -20, 80),
    "log": (np.log, 1e-6, 1e6),
    "log2": (np.log2, 1e-6, 1e6),
    "log1p": (np.log1p, -0.9, 1e6),
    "sin": (np.sin, -1e3, 1e3),
    "cos": (np.cos, -1e3, 1e3),
    "tanh": (np.tanh, -20, 20),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80),
    "silu": (lambda x: x / (1 + np.exp(-x)), -80, 80),
    "gelu": (lambda x: 0.5 * x * _erfc(-x / np.sqrt(2)), -5, 20),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-6, 1e6),
    "erf": (_erf, -4, 4),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(TRANSCENDENTAL))
def test_transcendental(name: str, device: str) -> None:
    truth, low, high = TRANSCENDENTAL[name]
    a = values(low, high, count(device)).astype(np.float32)
    (x,) = on(device, a)
    f = getattr(tt, name, None) or getattr(tt.nn.functional, name)
    error = ulps(f(x).cpu().numpy(), truth(a.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 4, f"{name}({a[worst]!r}) is {error[worst]:.2f} ULP off"


@pytest.mark.parametrize("device", DEVICES)
def test_pow(device: str) -> None:
    n = count(device)
    a, b = values(1e-3, 1e3, n, 1).astype(np.float32), values(-5, 5, n, 2).astype(np.float32)
    x, y = on(device, a, b)
    error = ulps(tt.pow(x, y).cpu().numpy(), a.astype(np.float64) ** b.astype(np.float64))
    assert error.max() <= 4, f"pow is {error.max():.2f} ULP off"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", SIXTEEN)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "gelu", "silu", "sin", "rsqrt"])
def test_sixteen_bit_functions_round_once(name: str, dtype: np.dtype, device: str) -> None:
    truth, low, high = TRANSCENDENTAL[name]
    a = values(max(low, -8), min(high, 8), count(device)).astype(dtype)
    a = a[a.astype(np.float64) != 0]
    (x,) = on(device, a)
    f = getattr(tt, name, None) or getattr(tt.nn.functional, name)
    exact = truth(a.astype(np.float64))
    error = ulps(f(x).cpu().numpy(), exact)[np.abs(exact) > 1e-4]
    assert error.max() <= 0.51, f"{name} in {dtype} is {error.max():.3f} ULP off; computed in float32 and rounded once it is 0.501"


# sums: 8 eps * sum|x|, along any axis
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums(name: str, dim: int | None, device: str) -> None:
    shape = (700, 9) if device == "emulated" else (200_000, 9)
    for layout in ("C", "F"):
        a = np.asarray(np.random.default_rng(3).uniform(0, 1, shape), dtype=np.float32, order=layout)  # type: ignore[call-overload]
        (x,) = on(device, a)
        got = getattr(tt, name)(x, **({} if dim is None else {"dim": dim})).cpu().numpy()
        wide = a.astype(np.float64)
        truth, size = getattr(wide, name)(dim), getattr(np.abs(wide), name)(dim)
        error = np.abs(got - truth) / (np.finfo(np.float32).eps * size)
        assert error.max() <= 8, f"{name} over {shape} ({layout}) dim {dim}: {error.max():.1f} eps * sum|x|"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", SIXTEEN)
def test_sixteen_bit_sums_accumulate_in_float32(dtype: np.dtype, device: str) -> None:
    a = np.ones(5_000 if device == "emulated" else 60_000, dtype)  # a 16-bit accumulator stops at 2048, or at 256
    (x,) = on(device, a)
    assert x.sum().item() == np.float64(np.array(a.size).astype(dtype))
    assert x.mean().item() == 1.0


# matmul: 8 eps * (|A| @ |B|)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(transposed: bool, device: str) -> None:
    m, k, n = (20, 150, 17) if device == "emulated" else (200, 3_000, 100)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(np.float32).T if transposed else rng.standard_normal((k, n)).astype(np.float32)
    x, y = on(device, a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = np.abs((x @ y).cpu().numpy() - wide_a @ wide_b) / (np.finfo(np.float32).eps * (np.abs(wide_a) @ np.abs(wide_b)))
    assert error.max() <= 8, f"{error.max():.1f} eps * |A| @ |B|"


# random numbers: the same bits everywhere
@pytest.mark.parametrize("device", ["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("draw", ["rand", "randint", "randperm"])
def test_same_seed_same_bits_on_every_device(draw: str, device: str) -> None:
    def make(where: str) -> np.ndarray:
        tt.manual_seed(7)
        if draw == "rand":
            return np.concatenate([tt.rand(33, device=where).cpu().numpy(), tt.rand(1025, device=where).cpu().numpy()])
        if draw == "randint":
            return tt.randint(0, 1000, (517,), device=where).cpu().numpy()
        return tt.randperm(101, device=where).cpu().numpy()

    np.testing.assert_array_equal(make("cpu"), make("cuda"))
