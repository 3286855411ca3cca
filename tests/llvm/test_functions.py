"""The mathematics on SIMD vectors beside extended precision: within 4 ulp, exact where a function is, special values included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tritensor.llvm import compiler, simd_functions
from tritensor.llvm.loops import Loop
from tritensor.llvm.simd import Code, Vector

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")

_ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, -1e-40, 1e-30, -1e-30, 3e38, -3e38])


def _spread(low: float, high: float) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.uniform(low, high, 40_000)


def _powers(low: float, high: float, signed: bool = False) -> Callable[[np.random.Generator], np.ndarray]:
    def draw(rng: np.random.Generator) -> np.ndarray:
        x = 10.0 ** rng.uniform(low, high, 40_000)
        return x * rng.choice([-1.0, 1.0], x.size) if signed else x

    return draw


_CASES = {
    "exp": (_spread(-103, 89), _powers(-8, 0, True)), "exp2": (_spread(-149, 128), _powers(-8, 0, True)), "expm1": (_spread(-20, 88), _powers(-8, 0, True)),
    "log": (_powers(-44, 38), _spread(0.5, 2)), "log2": (_powers(-44, 38), _spread(0.5, 2)), "log10": (_powers(-44, 38), _spread(0.5, 2)),
    "log1p": (_spread(-1, 1), _powers(-8, 38)), "sin": (_spread(-7, 7), _spread(-5e4, 5e4)), "cos": (_spread(-7, 7), _spread(-5e4, 5e4)),
    "tan": (_spread(-7, 7), _spread(-5e4, 5e4)), "tanh": (_spread(-10, 10), _powers(-8, 0, True)), "sinh": (_spread(-88, 88), _powers(-8, 0, True)),
    "cosh": (_spread(-88, 88), _powers(-8, 0, True)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", _CASES)
def test_within_four_units_in_the_last_place(name: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([draw(rng) for draw in _CASES[name]]).astype(dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, _ODD.astype(dtype)]) if name not in ("sin", "cos", "tan") else x
        want = getattr(np, name)(x.astype(np.longdouble))
        rounded = want.astype(dtype)
        found = np.empty_like(x)
        assert Loop(getattr(simd_functions, name))((x,), found)
        known = np.isfinite(rounded)
        np.testing.assert_array_equal(found[~known], rounded[~known])
        unit = np.maximum(np.spacing(np.abs(rounded[known])), np.finfo(dtype).smallest_subnormal)
        off = np.abs(found[known].astype(np.longdouble) - want[known]) / unit
    assert off.max() <= 4, (x[known][off.argmax()], found[known][off.argmax()], want[known][off.argmax()])
    zero = (x == 0) & (rounded == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))


@pytest.mark.parametrize("name", ["sqrt", "floor", "ceil", "trunc", "rint", "absolute"])
def test_exact_functions(name: str) -> None:
    x = np.concatenate([np.random.default_rng(0).uniform(-3, 3, 5000), _ODD]).astype(np.float32)
    found = np.empty_like(x)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    assert Loop(getattr(simd_functions, name))((x,), found)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("hard", [1e9, np.inf, np.nan])
def test_numpy_takes_arguments_that_are_too_far_out(name: str, hard: float) -> None:
    x = np.ones(5000)
    found = np.empty_like(x)
    assert Loop(getattr(simd_functions, name))((x,), found)
    for place in (0, 4999):  # in a whole vector, in the rest
        y = x.copy()
        y[place] = hard
        assert not Loop(getattr(simd_functions, name))((y,), found)


def test_numbers_that_do_not_fit_an_integer_are_frozen() -> None:
    """NaN as an integer is poison to LLVM, and so would be all that is made of it; frozen it is some integer, and NaN times its power is NaN."""
    code = Code(16, "v")
    simd_functions.exp(Vector(code, "%x", "f32"))
    (at,) = [i for i, line in enumerate(code.lines) if "fptosi" in line]
    assert "freeze" in code.lines[at + 1]
