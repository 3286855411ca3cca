"""Python syntax in interpreted kernels means what Triton's compiler makes of it."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ground.errors import LaunchError
from tritensor.ops.array import from_host, to_host

GPU = device("cuda", 0)
X = np.array([-2.0, 0.5, 3.0, -0.25, 8.0, 0.0, 1.0, -7.0], np.float32)


def run(kernel: Any, *args: Any, grid: tuple[int, ...] = (1,), **constants: Any) -> np.ndarray:
    """What a kernel (out, X, ...) leaves in 32 zeros."""
    y = from_host(np.zeros(32, np.float32), GPU)
    launch(kernel, grid, y, from_host(X, GPU), *args, **constants)
    return to_host(y)


@triton.jit
def loop_variables(y, x, n, wide: tl.int64, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in range(n):
        total += tl.load(x + i) * k.to(tl.float32)
    for k in tl.range(n - 1, -1, -1, num_stages=2):
        total += (k.to(tl.int64) * 2).to(tl.float32)
    for k in range(wide):
        total += k.dtype.primitive_bitwidth
    for k in range(0, 4, 2):
        total += k.dtype.primitive_bitwidth
    tl.store(y + i, total)


@triton.jit
def masks_and_scalars(y, x, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
    for k in range(2):
        tl.store(y + k * N + i, tl.load(x + i, mask=(i < n) & (k < m), other=0.0))
    tl.store(y + 2 * N + i, 1.0, mask=(tl.program_id(0) < m) & (i < n) | (n < 0))
    tl.store(y + 3 * N + i, 1.0, mask=(n > 3) & (i >= n))


@triton.jit
def scalar_load(y, x, n):
    tl.store(y, tl.load(x, mask=n > 0, other=0.0))
    tl.store(y + 1, tl.load(x, mask=n > 0, other=5))


@triton.jit
def words_on_blocks(y, x, low, high, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, v > low and v < high)
    tl.store(y + N + i, v < low or v > high)
    tl.store(y + 2 * N + i, not v > low)
    tl.store(y + 3 * N + i, low < v <= high)


@triton.jit
def words_on_scalars(y, x, a, b, FLAG: tl.constexpr):
    if a > 0 and b > 0:
        tl.store(y, 1)
    if a < 0 or b > 0:
        tl.store(y + 1, 1)
    if not a > 5:
        tl.store(y + 2, 1)
    if FLAG and a > 0:
        tl.store(y + 3, 1)
    if FLAG is None or x is None:
        tl.store(y + 4, 1)
    tl.store(y + 5, 2.0 if a > b else 3.0)
    while a < 10 and b < 10:
        a += 1
        b += 2
    tl.store(y + 6, a)


@triton.jit
def both_are_evaluated(y, x, n):
    i = 0
    while (i < n) and (tl.load(x + i) != 100.0):
        i += 1
    tl.store(y, i)


@triton.jit
def extremes(y, x, n, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, min(v, 0.5) + max(v, 0.0))
    tl.store(y + N, min(n, 3) + max(n, 100) + min(N, M))


@triton.jit
def own_max(y, x, max: tl.constexpr):
    tl.store(y, max(2.0))


@triton.jit
def _plus_one(v):
    return v + 1


@triton.jit
def block_as_condition(y, x, N: tl.constexpr):
    if tl.load(x + tl.arange(0, N)) > 0:
        tl.store(y, 1)


@triton.jit
def bits(y, x, N: tl.constexpr):
    i = tl.arange(0, N)
    m = tl.load(x + i) > 0
    tl.store(y + i, m + m)
    tl.store(y + N + i, m * 2.0)
    tl.store(y + 2 * N + i, tl.where(m, 1, 2) - m.to(tl.int32))


@triton.jit
def floats_to_integers(y, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i) * 1e9
    tl.store(y + i, (tl.where(i == 5, float("nan"), v).to(tl.int32) // 1024).to(tl.float32))


def test_loop_variables_are_scalars_of_the_bounds_type() -> None:
    assert run(loop_variables, 3, np.int64(1), N=8)[:8].tolist() == (X * 3 + 6 + 64 + 2 * 32).tolist()


def test_masks_are_combined_with_scalars() -> None:
    inside, got = np.arange(8) < 5, run(masks_and_scalars, 5, 1, N=8)
    assert got.tolist() == np.concatenate([np.where(inside, X, 0), np.zeros(8), inside, ~inside]).tolist()


def test_a_scalar_that_is_masked_off_is_what_other_says() -> None:
    assert run(scalar_load, 0)[:2].tolist() == [0, 5]
    assert run(scalar_load, 1)[:2].tolist() == [-2, -2]


def test_and_or_not_and_chains_work_lane_by_lane() -> None:
    want = np.concatenate([(X > -1) & (X < 3), (X < -1) | (X > 3), ~(X > -1), (X > -1) & (X <= 3)])
    assert run(words_on_blocks, -1.0, 3.0, N=8).tolist() == want.tolist()


def test_and_or_not_of_scalars() -> None:
    assert run(words_on_scalars, 3, 4, FLAG=True)[:7].tolist() == [1, 1, 1, 1, 0, 3, 6]
    assert run(words_on_scalars, 6, -1, FLAG=None)[:7].tolist() == [0, 0, 0, 0, 1, 2, 10]


def test_both_sides_of_and_are_evaluated() -> None:
    """The compiler knows no short cut for values of run time: the load behind the bound happens."""
    with pytest.raises(SanitizerError, match=r"both_are_evaluated: .* load of x\[8\]"):
        run(both_are_evaluated, 8)
    assert run(both_are_evaluated, 7)[0] == 7


@pytest.mark.filterwarnings("ignore:builtin m.. on non-scalar tensor")  # Triton's own, of a form that public kernels have
def test_min_and_max_work_lane_by_lane() -> None:
    got = run(extremes, 7, N=8, M=4)
    assert got[:8].tolist() == (np.minimum(X, np.float32(0.5)) + np.maximum(X, 0)).tolist()
    assert got[8] == 3 + 100 + 4
    assert run(own_max, max=_plus_one)[0] == 3
    assert max is builtins.max
    assert range is builtins.range


def test_a_block_is_no_condition() -> None:
    with pytest.raises(LaunchError, match=r"block_as_condition: .* a condition is a block of several values"):
        run(block_as_condition, N=8)


def test_bits_wrap_at_one_bit() -> None:
    m = X > 0
    assert run(bits, N=8)[:24].tolist() == np.concatenate([np.zeros(8), m * 2, np.where(m, 0, 2)]).tolist()


def test_floats_beyond_an_integers_range_saturate() -> None:
    top = 2**31 - 1
    want = [-2 * 10**9, 5 * 10**8, top, -25 * 10**7, top, 0, 10**9, -(2**31)]
    assert run(floats_to_integers, N=8)[:8].tolist() == [float(np.float32(int(v / 1024))) for v in want]


OFFSET, STEP = 3, tl.constexpr(2)


@triton.jit
def global_number(y, x, FLAG: tl.constexpr):
    if FLAG:
        tl.store(y, tl.load(x) + OFFSET)
    else:
        tl.store(y, STEP * 4)


@triton.jit
def own_of_that_name(y, x):
    OFFSET = tl.load(x) * 2
    tl.store(y, OFFSET)


@triton.jit
def leaves_a_loop(y, x, n):
    i = 0
    while i < 8:
        if i == n:
            break
        i += 1
    tl.store(y, i)


def test_a_global_is_seen_only_as_a_constexpr() -> None:
    with pytest.raises(LaunchError, match=r"OFFSET is a global variable.* write OFFSET = tl.constexpr\(3\), or .* parameter"):
        run(global_number, FLAG=True)
    assert run(global_number, FLAG=False)[0] == 8  # in a branch that is not compiled it is nobody's business
    assert run(own_of_that_name)[0] == 2 * X[0]


def test_triton_can_be_told_to_let_any_global_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    fresh = triton.jit(lambda_free(7))
    assert run(fresh)[0] == X[0] + 7


def lambda_free(amount: int) -> Any:
    def adds_a_number_from_around(y, x):
        tl.store(y, tl.load(x) + amount)

    return adds_a_number_from_around


def test_names_of_the_function_around_it_are_found() -> None:
    with pytest.raises(LaunchError, match="amount is a global variable"):
        run(triton.jit(lambda_free(7)))
    assert run(triton.jit(lambda_free(tl.constexpr(5))))[0] == X[0] + 5


def test_statements_that_the_compiler_does_not_take() -> None:
    assert run(leaves_a_loop, 9)[0] == 8
    with pytest.raises(
        LaunchError,
        match=r"leaves_a_loop: .*takes no break in a kernel; let the condition of a while loop say it \(test_emulator_syntax.py:",
    ):
        run(leaves_a_loop, 3)
