"""Threads of one program that load what others of it store, and products that tensor cores round: found where a test asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from tritensor.ground.errors import ArgumentError
from tritensor.testing import check_kernel

X = np.arange(64, dtype=np.float32)


@triton.jit
def turned(x, between, y, WAITS: tl.constexpr, COUNTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(between + i, tl.load(x + i))
    if WAITS:
        tl.debug_barrier()
    if COUNTS:
        tl.atomic_add(between, 0.0)
    tl.store(y + i, tl.load(between + (BLOCK - 1 - i)))


def ask(waits: bool = False, counts: bool = False, **more: Any) -> None:
    check_kernel(turned, (1,), (X, 0 * X, 0 * X), {"between": X, "y": X[::-1]}, WAITS=waits, COUNTS=counts, BLOCK=64, **more)


def test_another_thread_may_not_have_stored_yet() -> None:
    with pytest.raises(
        AssertionError,
        match=r"loads between\[63\], which another thread of this program stores, in test_own_stores\.py:21: .*debug_barrier",
    ) as caught:
        ask()
    assert "test_own_stores.py:26: tl.store(y + i" in str(caught.value)


def test_what_waits_passes() -> None:
    ask(waits=True)
    ask(counts=True)
    ask(num_warps=1)


@triton.jit
def again(x, y, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i))
        tl.store(y + i, tl.load(y + i) + 1)


def test_a_thread_sees_what_it_stored_itself() -> None:
    check_kernel(again, (1,), (X, 0 * X, 64), {"y": X + 1}, BLOCK=16)


@triton.jit
def product(a, b, c, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def test_float32_is_rounded_as_tensor_cores_do() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 16, 16)).astype(np.float32)
    call = (product, (1,), (a, b, 0 * a), {"c": a.astype(np.float64) @ b})
    check_kernel(*call, PRECISION="ieee", BLOCK=16, atol=1e-5)
    check_kernel(*call, PRECISION="tf32", BLOCK=16, rtol=2e-3, atol=1e-2)
    with pytest.raises(AssertionError, match="rounds float32 to tf32, as tensor cores do: give input_precision='ieee'"):
        check_kernel(*call, PRECISION="tf32", BLOCK=16, atol=1e-5)


@triton.jit
def tops(x, y, top, n, BLOCK: tl.constexpr):
    m = tl.max(tl.load(x + tl.arange(0, 64)), 0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(top, m)
    tl.store(y + i, tl.load(x + i) - m)


def test_equal_stores_are_told_and_may_be_meant() -> None:
    call = (tops, (4,), (X, 0 * X, np.zeros(1, np.float32), 64), {"y": X - 63, "top": X[-1:]})
    check_kernel(*call, repeats="top", BLOCK=16)
    with pytest.raises(
        AssertionError, match=r"stores to top\[0\], which program \(\d, 0, 0\) .* stored the same value to as well; narrow .*repeats="
    ):
        check_kernel(*call, BLOCK=16)
    with pytest.raises(ArgumentError, match="'tip', which is expected to be written, is no array"):
        check_kernel(*call, repeats=["tip"], BLOCK=16)
