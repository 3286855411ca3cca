"""Types of new tensors: what `dtype=float` means, what nested lists of numbers, tensors and numpy's values promote to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt


@pytest.mark.parametrize(("kind", "want"), [(float, "float64"), (int, "int64"), (complex, "complex128"), (bool, "bool")])
@pytest.mark.parametrize("default", ["float32", "float64"])
def test_python_types(kind: Any, want: str, default: str) -> None:
    wanted = getattr(tt, want)
    tt.set_default_dtype(getattr(tt, default))
    try:
        for y in (
            tt.zeros(2, dtype=kind),
            tt.ones(2, dtype=kind),
            tt.full((2,), 1, dtype=kind),
            tt.empty(2, dtype=kind),
            tt.tensor([1, 2], dtype=kind),
        ):
            assert y.dtype == wanted
        assert (
            tt.zeros(2).to(kind).dtype
            == tt.zeros(2).new_zeros(2, dtype=kind).dtype
            == tt.zeros_like(tt.zeros(2), dtype=kind).dtype
            == wanted
        )
    finally:
        tt.set_default_dtype(tt.float32)


def test_float_everywhere() -> None:
    made = (tt.arange(3, dtype=float), tt.eye(2, dtype=float), tt.linspace(0, 1, 3, dtype=float), tt.rand(2, dtype=float))
    assert all(y.dtype == tt.float64 for y in made)
    assert tt.zeros(2, dtype=tt.int32).sum(dtype=float).dtype == tt.float64
    assert tt.zeros(2, dtype=float, device="cuda").dtype == tt.float64
    assert tt.arange(3.0).dtype == tt.full((2,), 1.5).dtype == tt.float32  # values alone give the default type


def item(value: Any, dtype: str) -> tt.Tensor:
    return tt.tensor(value, dtype=getattr(tt, dtype))


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        pytest.param(lambda: [tt.tensor(1.0), 2.0], "float32", [1, 2], id="a tensor and a float"),
        pytest.param(lambda: [2, tt.tensor(1.5)], "float32", [2, 1.5], id="the first is no tensor"),
        pytest.param(lambda: [tt.tensor(1), 2.5], "float32", [1, 2.5], id="an int64 tensor and a float"),
        pytest.param(lambda: [2.5, item(1, "float64")], "float64", [2.5, 1], id="a float64 tensor"),
        pytest.param(lambda: [item(1, "float16"), 2], "float16", [1, 2], id="float16 and an int"),
        pytest.param(lambda: [item(1, "bfloat16"), item(1, "float16")], "float32", [1, 1], id="two 16-bit floats"),
        pytest.param(lambda: [item(1, "bfloat16"), item(2, "bfloat16")], "bfloat16", [1, 2], id="bfloat16"),
        pytest.param(lambda: [item(1, "int32"), 2], "int64", [1, 2], id="int32 and an int"),
        pytest.param(lambda: [item(1, "int32"), item(2, "int32")], "int32", [1, 2], id="int32"),
        pytest.param(lambda: [True, item(3, "uint8")], "uint8", [1, 3], id="a bool and uint8"),
        pytest.param(lambda: [[tt.tensor(1.0), 2], [3, 4]], "float32", [[1, 2], [3, 4]], id="nested"),
        pytest.param(lambda: [1.0, np.float64(2)], "float64", [1, 2], id="numpy's float64"),
        pytest.param(lambda: [np.float32(1), 2.0], "float32", [1, 2], id="numpy's float32"),
        pytest.param(lambda: [np.int32(1), np.int32(2)], "int32", [1, 2], id="numpy's int32"),
        pytest.param(lambda: [np.array([1.0, 2.0], np.float32), [3, 4]], "float32", [[1, 2], [3, 4]], id="an array and a list"),
        pytest.param(lambda: [tt.tensor([1.0]), tt.tensor([[2.0]])], "float32", [1, 2], id="tensors of one element are numbers"),
        pytest.param(lambda: [tt.tensor([1.0, 2.0]), [3, 4]], "float32", [[1, 2], [3, 4]], id="tensors of several are rows"),
        pytest.param(lambda: [range(2), range(2, 4)], "int64", [[0, 1], [2, 3]], id="ranges"),
        pytest.param(lambda: [[], []], "float32", [[], []], id="nothing"),
        pytest.param(lambda: [True, 2.5, 3], "float32", [1, 2.5, 3], id="Python's numbers"),
        pytest.param(lambda: [1, 2j], "complex64", [1, 2j], id="complex numbers"),
    ],
)
def test_nested_lists(data: Any, dtype: str, values: Any) -> None:
    for make in (tt.tensor, tt.as_tensor):
        y = make(data())
        assert y.dtype == getattr(tt, dtype)
        assert y.tolist() == values


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [(1e30, "int32", OverflowError), (float("inf"), "int64", OverflowError), ([1.0, float("nan")], "uint8", OverflowError),
     (300, "uint8", OverflowError), (1j, "float32", TypeError), ([1, None], None, TypeError), ([tt.tensor(1.0), "a"], None, TypeError)],
)  # fmt: skip
def test_refused(data: Any, dtype: str | None, error: type[Exception]) -> None:
    with pytest.raises(error, match="tensor: "):
        tt.tensor(data, dtype=None if dtype is None else getattr(tt, dtype))


def test_requires_grad_inside_a_list_is_read_as_a_value() -> None:
    y = tt.tensor([tt.tensor(1.0, requires_grad=True) * 2, 3.0])
    assert y.tolist() == [2, 3]
    assert not y.requires_grad


def test_integers_beyond_64_bits() -> None:
    huge = 2**70
    assert tt.tensor([huge], dtype=tt.float64).tolist() == [float(huge)]
    assert tt.tensor(huge, dtype=tt.float32).item() == float(huge)
    assert tt.tensor([huge, 1.5]).dtype == tt.float32
    assert tt.tensor([[huge], [1j]]).tolist() == [[complex(huge)], [1j]]
    assert tt.tensor([huge], dtype=tt.complex128).dtype == tt.complex128
    for kind, named in ((None, "int64"), (tt.int64, "int64"), (tt.int32, "int32"), (tt.bool, "bool")):
        with pytest.raises(
            RuntimeError, match=f"tensor: an integer does not fit {named}; give dtype=tritensor.float64, or smaller numbers"
        ):
            tt.tensor([huge], dtype=kind)
    with pytest.raises(ValueError, match="tensor: an integer is beyond what float64 holds; give smaller numbers"):
        tt.tensor([10**400], dtype=tt.float64)
    with pytest.raises(tt.DTypeError, match="does not hold numbers"):
        tt.tensor([huge, None])


def test_shapes_of_new_tensors() -> None:
    assert tt.Tensor(tt.Size([2, 0])).shape == (2, 0)
    assert tt.Tensor(np.int64(2), 3).shape == (2, 3)
    assert tt.Tensor(0).shape == (0,)
