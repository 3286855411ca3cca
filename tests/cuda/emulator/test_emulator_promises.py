"""Promises of a kernel, held against its values: hints, assumptions, assertions, offsets that int32 cannot hold."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ops.array import from_host, to_host

GPU = device("cuda", 0)
HERE = r"\(test_emulator_promises.py:\d+: .*tl\..+\)$"


def run(kernel: Any, *args: Any, grid: tuple[int, ...] = (1,), **constants: Any) -> np.ndarray:
    """The first argument, 64 zeros, after a launch."""
    y = from_host(np.zeros(64, np.int32), GPU)
    launch(kernel, grid, y, *args, **constants)
    return to_host(y)


# Hints
@triton.jit
def hinted(y, first, HINT: tl.constexpr, V: tl.constexpr, N: tl.constexpr):
    i = first + tl.arange(0, N)
    if HINT == "multiple":
        i = tl.multiple_of(i, V)
    elif HINT == "contiguous":
        i = tl.max_contiguous(i, V)
    elif HINT == "both":
        i = tl.max_contiguous(tl.multiple_of(i, V), V)
    elif HINT == "constant":
        i = tl.max_constancy(i // 4, V)
    tl.store(y + i, i)


@triton.jit
def hinted_rows(y, stride, V: tl.constexpr):
    i = tl.multiple_of(tl.arange(0, 4)[:, None] * stride + tl.arange(0, 8)[None, :], (1, V))
    tl.store(y + i, i)


@triton.jit
def hinted_wrap(y, rows, N: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of((tl.program_id(0) * N + tl.arange(0, N)) % rows, N), N)
    tl.store(y + tl.program_id(0) * N + tl.arange(0, N), i)


@triton.jit
def hinted_scalars(y, stride, V: tl.constexpr):
    stride = tl.multiple_of(stride, V)
    base = tl.multiple_of(y, 16)
    for k in range(2):
        tl.store(base + tl.multiple_of(k * 8, 8), stride)


@triton.jit
def hinted_pointer(y):
    tl.store(tl.multiple_of(y + 1, 16), 1)


@pytest.mark.parametrize(
    ("hint", "first", "value"),
    [("multiple", 0, 16), ("multiple", 16, 16), ("multiple", 8, 8), ("contiguous", 5, 16), ("contiguous", 5, 4), ("both", 32, 16), ("constant", 0, 4)],
)  # fmt: skip
def test_a_true_hint_passes(hint: str, first: int, value: int) -> None:
    assert run(hinted, first, HINT=hint, V=value, N=16)[first] in (first, first // 4)


@pytest.mark.parametrize(
    ("hint", "first", "value", "said"),
    [
        ("multiple", 8, 16, "multiple_of 16 is false: a value is 8"),
        ("multiple", 1, 2, "multiple_of 2 is false: a value is 1"),
        ("both", 20, 16, "multiple_of 16 is false: a value is 20"),
        ("constant", 0, 8, "max_constancy of 8 is false: a value is 1"),
    ],
)
def test_a_false_hint_names_kernel_line_and_value(hint: str, first: int, value: int, said: str) -> None:
    with pytest.raises(SanitizerError, match=rf"^hinted: program \(0, 0, 0\): the hint {re.escape(said)}, at \[\d+\] of the block {HERE}"):
        run(hinted, first, HINT=hint, V=value, N=16)


def test_hints_have_a_value_for_each_dimension() -> None:
    assert run(hinted_rows, 8, V=8)[8:16].tolist() == list(range(8, 16))
    with pytest.raises(SanitizerError, match="multiple_of 8 is false: a value is 9"):
        run(hinted_rows, 9, V=8)


@triton.jit
def hinted_tile(y, stride, V: tl.constexpr):
    p = tl.multiple_of(y + tl.arange(0, 4)[:, None] * stride + tl.arange(0, 8)[None, :], (V, V))
    tl.store(p, 1)


def test_of_a_tile_of_pointers_the_rows_begins_are_promised() -> None:
    """The usual multiple_of(ptrs, (16, 16)): the compiler reads the dimension along which addresses run on."""
    assert run(hinted_tile, 8, V=16).sum() == 32
    with pytest.raises(SanitizerError, match=r"hinted_tile: .* multiple_of 16 is false"):
        run(hinted_tile, 9, V=16)


def test_a_row_that_wraps_in_mid_tile_is_not_contiguous() -> None:
    """The usual `rows % M` of a matrix product is a false hint where M does not divide by the tile."""
    assert run(hinted_wrap, 32, grid=(3,), N=16)[32:48].tolist() == list(range(16))
    with pytest.raises(SanitizerError, match="max_contiguous of 16 is false: a value is 0"):
        run(hinted_wrap, 24, grid=(2,), N=16)


def test_hints_on_scalars_and_pointers() -> None:
    assert run(hinted_scalars, 24, V=8)[8] == 24
    with pytest.raises(SanitizerError, match="multiple_of 16 is false: a value is 24"):
        run(hinted_scalars, 24, V=16)
    with pytest.raises(SanitizerError, match=r"hinted_pointer: .* multiple_of 16 is false"):
        run(hinted_pointer)


# Assertions and assumptions
@triton.jit
def asserts(y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_assert(i < n, "beyond the last row")
    tl.store(y + i, i)


@triton.jit
def asserts_under_a_mask(y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_assert(i < n, "beyond the last row", mask=i < 4)
    tl.store(y + i, i)


@triton.jit
def asserts_in_python(y, n):
    assert n > 4, "too few"
    tl.store(y, n)


@triton.jit
def asserts_on_blocks(y, n, N: tl.constexpr):
    assert tl.arange(0, N) < n
    tl.store(y, n)


@triton.jit
def assumes(y, n):
    tl.assume(n > 4)
    tl.store(y, n)


def test_an_assertion_that_fails_raises_with_its_message() -> None:
    assert run(asserts, 8, N=8)[7] == 7
    with pytest.raises(
        SanitizerError, match=rf"^asserts: program \(0, 0, 0\): device_assert failed: beyond the last row, at \[6\] of \[8\] {HERE}"
    ):
        run(asserts, 6, N=8)
    assert run(asserts_under_a_mask, 6, N=8)[7] == 7
    with pytest.raises(SanitizerError, match=r"beyond the last row, at \[3\]"):
        run(asserts_under_a_mask, 3, N=8)


def test_an_assert_statement_is_an_assertion() -> None:
    assert run(asserts_in_python, 5)[0] == 5
    with pytest.raises(SanitizerError, match=r"asserts_in_python: .* device_assert failed: too few"):
        run(asserts_in_python, 4)
    with pytest.raises(SanitizerError, match=r"device_assert failed, at \[5\] of \[8\]"):
        run(asserts_on_blocks, 5, N=8)


def test_a_false_assumption_is_an_error() -> None:
    assert run(assumes, 5)[0] == 5
    with pytest.raises(SanitizerError, match=r"assumes: .* an assumption \(tl.assume\) is false"):
        run(assumes, 4)


# Offsets
@triton.jit
def product_of(y, a, b, WIDE: tl.constexpr):
    at = a.to(tl.int64) * b if WIDE else a * b
    tl.store(y + at, 1)


@triton.jit
def sum_of(y, a, b):
    tl.store(y + (a + b + 20), 1)


@triton.jit
def shifted(y, a, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + ((i[:, None] + a) << 2) + tl.arange(0, 4)[None, :], 1)


@triton.jit
def masked_lanes(y, stride, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i * stride, 1, mask=i < n)


@triton.jit
def there_and_back(y, a, b):
    tl.store(y + (a + b - a), 1)


@triton.jit
def narrowed(y, a):
    tl.store(y + a.to(tl.int32), 1)


@triton.jit
def hashed(y, seed, N: tl.constexpr):
    h = (tl.arange(0, N) + seed).to(tl.uint32) * 2654435761
    tl.store(y + ((tl.arange(0, N) * 1103515245 + 12345) & 7), 1)
    tl.store(y + (h % 64).to(tl.int32), 1)


@triton.jit
def many_tiles(y, tiles, SIZE: tl.constexpr):
    for tile in range(tiles):
        tl.store(y + tile * SIZE, 1, mask=tile == tiles - 1)


def wrapped(kernel: Any, *args: Any, said: str, **constants: Any) -> None:
    with pytest.raises(
        SanitizerError,
        match=rf"store of y at an offset that wrapped around int32 \({re.escape(said)} in .*\.py:\d+: .*\); compute it in int64",
    ):
        run(kernel, *args, **constants)


def test_an_offset_that_wraps_around_is_found_though_it_lands_inside() -> None:
    """Each of these is an element of y again after wrapping around, so that nothing else would notice."""
    wrapped(product_of, 1 << 20, 1 << 12, said="1048576 * 4096 is 4294967296", WIDE=False)
    wrapped(sum_of, 2**31 - 8, 2**31 - 8, said="2147483640 + 2147483640 is 4294967280")
    wrapped(shifted, 1 << 30, said="1073741824 << 2 is 4294967296", N=4)
    wrapped(narrowed, np.int64(1 << 32), said="4294967296 cast to int32")
    wrapped(many_tiles, 5, said="4 * 1073741824 is 4294967296", SIZE=1 << 30)


def test_lanes_that_are_masked_off_may_wrap_around() -> None:
    assert run(masked_lanes, 1 << 30, 1, N=8)[0] == 1
    wrapped(masked_lanes, 1 << 30, 5, said="2 * 1073741824 is 2147483648", N=8)


def test_what_comes_out_right_is_no_error() -> None:
    assert run(there_and_back, 2**31 - 8, 40)[40] == 1
    assert run(hashed, 7, N=16).any()
    with pytest.raises(SanitizerError, match=r"store of y\[4294967296\]"):  # the offset is right: y is too short
        run(product_of, 1 << 20, 1 << 12, WIDE=True)
