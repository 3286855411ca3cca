"""The type of a result: categories first, tensors without dimensions weak beside those with, numbers weaker still."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground import dtypes
from tritensor.ops.table import ops

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("wide", "single", "want"),
    [
        ("float32", "float64", "float32"),
        ("float16", "float64", "float16"),
        ("bfloat16", "float32", "bfloat16"),
        ("int8", "int64", "int8"),
        ("uint8", "int8", "uint8"),
        ("uint8", "int64", "uint8"),
        ("bool", "uint8", "uint8"),
        ("bool", "float64", "float64"),
        ("int64", "float16", "float16"),
        ("int32", "float64", "float64"),
        ("float64", "float32", "float64"),
        ("float32", "int64", "float32"),
    ],
)
def test_a_tensor_without_dimensions_is_weak(wide: str, single: str, want: str, on: str) -> None:
    a, b = tt.ones(2, dtype=getattr(tt, wide), device=on), tt.ones((), dtype=getattr(tt, single), device=on)
    for y in (a + b, b + a, tt.maximum(a, b), tt.where(a == 1, a, b), tt.where(a == 1, b, a)):
        assert y.dtype == getattr(tt, want)
    assert (b + b).dtype == b.dtype
    assert (a[0] + b).dtype == tt.ones(1, dtype=a.dtype).__add__(tt.ones(1, dtype=b.dtype)).dtype  # both without: equals


@pytest.mark.parametrize("on", DEVICES)
def test_numbers_are_weaker_than_tensors_without_dimensions(on: str) -> None:
    half = tt.ones((), dtype=tt.float16, device=on)
    assert (half + 1.5).dtype == tt.float16
    assert (tt.ones((), dtype=tt.int32, device=on) + 1).dtype == tt.int32
    assert (tt.ones((), dtype=tt.int32, device=on) + 1.5).dtype == tt.float32
    assert (tt.ones((), dtype=tt.bool, device=on) + 1).dtype == tt.int64
    assert tt.where(tt.ones(2, dtype=tt.bool, device=on), tt.ones((), dtype=tt.int16, device=on), 3).dtype == tt.int16


def test_complex_keeps_the_precision_of_the_stronger() -> None:
    assert (tt.ones(2) + tt.tensor(1j, dtype=tt.complex128)).dtype == tt.complex64
    assert (tt.ones(2, dtype=tt.float64) + 1j).dtype == tt.complex128
    assert (tt.ones(2, dtype=tt.int64) + 1j).dtype == tt.complex64
    assert (tt.ones(2, dtype=tt.int64) + tt.tensor(1j, dtype=tt.complex128)).dtype == tt.complex128
    tt.set_default_dtype(tt.float64)
    try:
        assert (tt.ones(2, dtype=tt.int64) + 1j).dtype == tt.complex128
    finally:
        tt.set_default_dtype(tt.float32)


@pytest.mark.parametrize("on", DEVICES)
def test_an_int_has_to_fit_the_type_that_is_computed_in(on: str) -> None:
    x = tt.tensor([1, 2], dtype=tt.uint8, device=on)
    assert (x / -1).tolist() == [-1, -2]
    np.testing.assert_allclose((x / 300).cpu().numpy(), np.array([1, 2], np.float32) / 300, rtol=1e-6)
    assert (x.float() + 300).tolist() == [301, 302]
    for call in (lambda: x + 300, lambda: x * -1, lambda: x < 300):
        with pytest.raises(OverflowError, match="does not fit uint8"):
            call()


@pytest.mark.parametrize("on", DEVICES)
def test_gradients_reach_both_types(on: str) -> None:
    a = tt.ones(3, device=on, requires_grad=True)
    b = tt.tensor(2.0, dtype=tt.float64, device=on, requires_grad=True)
    (a * b).sum().backward()
    assert (a.grad.dtype, a.grad.tolist()) == (tt.float32, [2, 2, 2])
    assert (b.grad.dtype, b.grad.tolist()) == (tt.float64, 3)


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
def test_float8_passes_what_computes_nothing(name: str) -> None:
    x = tt.tensor([1.0, 2.0, -4.0]).to(getattr(tt, name))
    index = tt.tensor([2, 0])
    for y, want in (
        (tt.cat([x, x]), [1, 2, -4, 1, 2, -4]),
        (tt.stack([x, x], 1), [[1, 1], [2, 2], [-4, -4]]),
        (x.flip(0), [-4, 2, 1]),
        (x.roll(1), [-4, 1, 2]),
        (x.repeat(2), [1, 2, -4, 1, 2, -4]),
        (x.clone(), [1, 2, -4]),
        (x[::2].contiguous(), [1, -4]),
        (x[index], [-4, 1]),
        (x.gather(0, index), [-4, 1]),
        (tt.where(x.float() > 0, x, x.flip(0)), [1, 2, 1]),
        (x.masked_fill(x.float() < 0, 2), [1, 2, 2]),
    ):
        assert y.dtype == x.dtype
        assert y.float().tolist() == want


@pytest.mark.parametrize("on", DEVICES)
def test_float8_is_refused_where_something_is_computed(on: str) -> None:
    ones = tt.ones(2, 2)
    x = ones.to(tt.float8_e5m2).to(on)
    calls: list[Any] = [lambda: x + x, lambda: x + 1, lambda: 2.0 * x, lambda: -x, lambda: x.abs(), lambda: x.exp(), lambda: x @ x]
    for call in calls:
        with pytest.raises(TypeError, match="float8_e5m2"):
            call()
    with pytest.raises(TypeError, match="no common type"):
        tt.cat([x, ones.to(tt.float8_e4m3fn).to(on)])
    with pytest.raises(TypeError, match="no common type"):
        tt.cat([x, tt.ones(2, 2, dtype=tt.int32, device=on)])


def test_magnitude_of_complex_numbers() -> None:
    for dtype, want in ((tt.complex64, tt.float32), (tt.complex128, tt.float64)):
        x = tt.tensor([3 + 4j, -1j], dtype=dtype)
        assert x.abs().dtype == want
        assert x.abs().tolist() == tt.abs(x).tolist() == abs(x).tolist() == [5, 1]
        assert abs(x[0]).item() == 5


@pytest.mark.parametrize("on", DEVICES)
def test_masked_fill_makes_the_number_one_of_the_type(on: str) -> None:
    mask = tt.tensor([True, False], device=on)
    truth = tt.zeros(2, dtype=tt.bool, device=on)
    assert truth.masked_fill(mask, 1).tolist() == truth.masked_fill(mask, 0.5).tolist() == [True, False]
    whole = tt.zeros(2, dtype=tt.int64, device=on)
    assert whole.masked_fill(mask, 1.7).tolist() == [1, 0]
    assert whole.masked_fill(mask, True).dtype == tt.int64
    with pytest.raises(OverflowError, match="nan does not fit int64"):
        whole.masked_fill(mask, float("nan"))
    with pytest.raises(RuntimeError, match="a number or a 0-d tensor"):
        whole.masked_fill(mask, tt.ones(2, dtype=tt.int64, device=on))
    assert tt.zeros(2, device=on).masked_fill(mask, tt.tensor(2.0, dtype=tt.float64, device=on)).dtype == tt.float32


def test_the_rule_itself() -> None:
    a, b = np.zeros(2, np.float32), np.zeros((), np.float64)
    assert dtypes.result_type((a, b)) == np.float32
    assert dtypes.result_type((None, b, 1)) == np.float64
    assert dtypes.result_type((True, 2)) == np.int64
    assert dtypes.result_type((True, 2, 1j)) == np.complex64
    with pytest.raises(TypeError, match="add: no tensor and no number"):
        dtypes.result_type((None,), "add")
    with pytest.raises(TypeError, match="at least one input must be a tensor"):
        ops.add(1, 2)


@pytest.mark.parametrize("on", DEVICES)
def test_lists_and_arrays_join_a_tensor_on_its_device(on: str) -> None:
    x = tt.ones(2, device=on)
    for y in (x + [1, 2], [1, 2] + x, x + np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0], np.float32) + x):
        assert (y.tolist(), y.dtype, y.device) == ([2.0, 3.0], tt.float32, x.device)


@pytest.mark.parametrize("on", DEVICES)
def test_scalars_of_numpy_are_numbers(on: str) -> None:
    x, k = tt.tensor([1.0, 4.0], device=on), tt.tensor([True, False], device=on)
    half = np.float64(0.5)
    found = (
        x + half,
        half + x,
        tt.add(x, np.int64(1)),
        tt.where(k, np.float32(0.5), x),
        tt.where(k, x, half),
        tt.clamp(x, half, np.float32(2.0)),
        x**half,
    )
    want = ([1.5, 4.5], [1.5, 4.5], [2.0, 5.0], [0.5, 4.0], [1.0, 0.5], [1.0, 2.0], [1.0, 2.0])
    assert [y.tolist() for y in found] == list(want)
    assert {y.dtype for y in found} == {tt.float32}
