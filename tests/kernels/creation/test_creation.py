"""Making tensors: types of data, memory shared or not, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"), (2, "int64"), (True, "bool"), ([1, 2.5], "float32"), ([], "float32"), ([[True], [False]], "bool"), (1j, "complex64"),
        (np.float64(2), "float64"), (np.arange(3, dtype=np.int16), "int16"), ([np.float64(1), np.float64(2)], "float64"), (range(3), "int64"),
    ],
)  # fmt: skip
def test_type_of_data(data: Any, dtype: str) -> None:
    assert tt.tensor(data).dtype.name == dtype


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_nested_lists_of_tensors(on: str) -> None:
    row = tt.tensor([1.0, 2.0], device=on)
    assert tt.tensor([row, row * 2], device=on).tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert tt.tensor(row, dtype=tt.float64).dtype == tt.float64
    assert tt.tensor(row).device == row.device


def test_memory() -> None:
    a = np.ones(3)
    shared, copied = tt.from_numpy(a), tt.tensor(a)
    a[0] = 5
    assert shared.tolist() == [5.0, 1.0, 1.0]
    assert copied.tolist() == [1.0, 1.0, 1.0]
    assert tt.as_tensor(shared) is shared
    assert tt.as_tensor(a).data_ptr() == shared.data_ptr()
    assert tt.as_tensor(a, dtype=tt.float32).dtype == tt.float32
    assert tt.from_dlpack(a).data_ptr() == shared.data_ptr()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: tt.tensor([[1, 2], [3]]), ValueError, "ragged"),
        (lambda: tt.tensor("abc"), TypeError, "does not hold numbers"),
        (lambda: tt.tensor([None, 1]), TypeError, "does not hold numbers"),
        (lambda: tt.tensor(object()), TypeError, "does not hold numbers"),
        (lambda: tt.from_numpy([1, 2]), TypeError, "is no numpy array"),
        (lambda: tt.from_numpy(np.array(["a"])), TypeError, "tensors cannot hold"),
        (lambda: tt.zeros(2, -1), ValueError, "negative size"),
        (lambda: tt.zeros(2.5), TypeError, "are not integers"),
        (lambda: tt.arange(0, 1, 0), ValueError, "step is 0"),
        (lambda: tt.linspace(0, 1, -1), ValueError, "steps -1 is negative"),
        (lambda: tt.tensor([1], requires_grad=True), RuntimeError, "int64 has no gradient"),
        (lambda: tt.zeros(1, device="tpu"), TypeError, "is not a device"),
    ],
)
def test_refused(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "uint8", "bool"])
def test_full_of_every_type(dtype: str, on: str) -> None:
    kind = getattr(tt, dtype)
    for value in (0, 1):
        x = tt.full((3, 2), value, dtype=kind, device=on)
        assert x.dtype == kind
        assert x.device.type == on
        assert x.cpu().double().tolist() == [[value] * 2] * 3
    assert tt.zeros_like(x).sum().item() == 0
    assert tt.ones_like(x).device == x.device
    assert x.new_zeros(2).dtype == kind
    assert tt.empty_like(x).shape == (3, 2)


def test_requires_grad() -> None:
    for x in (
        tt.zeros(2, requires_grad=True),
        tt.tensor([1.0], requires_grad=True),
        tt.rand(2, requires_grad=True),
        tt.eye(2, requires_grad=True),
    ):
        assert x.requires_grad
        assert x.is_leaf


@pytest.mark.parametrize(("value", "dtype"), [(300, tt.uint8), (-1, tt.uint8), (128, tt.int8), (-(2**31) - 1, tt.int32)])
def test_an_integer_out_of_range_raises(value: int, dtype: Any) -> None:
    with pytest.raises(OverflowError, match=f"tensor: {value} does not fit {dtype.name}"):
        tt.tensor([0, value], dtype=dtype)


def test_arrays_are_cast_and_wrap() -> None:
    assert tt.tensor(np.array([300]), dtype=tt.uint8).item() == 44


def test_shapes_by_keyword() -> None:
    for make in (tt.zeros, tt.ones, tt.empty, tt.rand, tt.randn):
        assert make(size=(2, 3)).shape == make(2, 3).shape == make((2, 3)).shape == (2, 3)
        assert make(()).shape == make(size=()).shape == ()
    assert tt.arange(end=3).tolist() == [0, 1, 2]
    assert tt.arange(start=1, end=3).tolist() == [1, 2]


def test_from_dlpack_of_what_is_no_array() -> None:
    with pytest.raises(TypeError, match="from_dlpack: int does not speak DLPack"):
        tt.from_dlpack(3)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_negative_zero_keeps_its_sign(device: str) -> None:
    assert np.signbit(tt.full((3,), -0.0, device=device).cpu().numpy()).all()
    assert not np.signbit(tt.full((3,), 0.0, device=device).cpu().numpy()).any()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_integers_are_not_filled_with_what_is_no_number(on: str, value: float) -> None:
    x = tt.zeros(2, dtype=tt.int32, device=on)
    for call in (lambda: tt.full((2,), value, dtype=tt.uint8, device=on), lambda: tt.full_like(x, value), lambda: x.new_full((2,), value)):
        with pytest.raises(OverflowError, match=r"^full(_like)?: .* does not fit u?int"):
            call()
