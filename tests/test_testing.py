"""testing.assert_close says what PyTorch's says, word for word; make_tensor draws what it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.testing import assert_close, make_tensor

T = tt.tensor
NAN, INF = float("nan"), float("inf")
# (arguments, options, the error's class, its text in PyTorch 2.13 with `torch` for our name)
TOLD: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    (T([1.0, 2.0]), T([1.0, 2.1]), {}, AssertionError, "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 0.09999990463256836 at index (1,) (up to 1e-05 allowed)\nGreatest relative difference: 0.04761900380253792 at index (1,) (up to 1.3e-06 allowed)"),
    (T(1.0), T(2.0), {}, AssertionError, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\nRelative difference: 0.5 (up to 1.3e-06 allowed)"),
    (T([1, 2]), T([1, 3]), {}, AssertionError, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index (1,)\nGreatest relative difference: 0.3333333432674408 at index (1,)"),
    (T([1.0]), T([1.0], dtype=tt.float64), {}, AssertionError, "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."),
    (T([1.0, 2.0]), T([1.0, 2.0, 3.0]), {}, AssertionError, "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3])."),
    (1, 2, {}, AssertionError, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (1.0, 1.1, {}, AssertionError, "Scalars are not close!\n\nExpected 1.1 but got 1.0.\nAbsolute difference: 0.10000000000000009 (up to 1e-07 allowed)\nRelative difference: 0.09090909090909098 (up to 1e-07 allowed)"),
    ([1, 2], [1, 3], {}, AssertionError, "Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\nRelative difference: 0.3333333333333333\n\nThe failure occurred for item [1]"),
    ({"a": T(1.0)}, {"a": T(2.0)}, {}, AssertionError, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\nRelative difference: 0.5 (up to 1.3e-06 allowed)\n\nThe failure occurred for item ['a']"),
    ([T(1.0)], [T(2.0), T(1.0)], {}, AssertionError, "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, {}, AssertionError, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"),
    (T([NAN]), T([NAN]), {}, AssertionError, "Tensor-likes are not close!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: nan at index (0,) (up to 1e-05 allowed)\nGreatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)"),
    (T([1.0]), T([1.0]), {"rtol": 0.01}, ValueError, "Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."),
    (T([1.0, 2.0]), T([1.0, 2.1]), {"rtol": 0, "atol": 0}, AssertionError, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 0.09999990463256836 at index (1,)\nGreatest relative difference: 0.04761900380253792 at index (1,)"),
    (T([1.0]), T([2.0]), {"msg": "hello"}, AssertionError, "hello"),
    (T(1.0), T(2.0), {"msg": lambda m: "X:" + m.split("\n")[0]}, AssertionError, "X:Scalars are not close!"),
    ("a", "a", {}, TypeError, "No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>."),
    (True, False, {}, AssertionError, "Booleans mismatch: True is not False"),
    (T([[1.0, 2.0], [3, 4]]), T([[1.0, 2.0], [3, 5]]), {}, AssertionError, "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\nGreatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\nGreatest relative difference: 0.20000000298023224 at index (1, 1) (up to 1.3e-06 allowed)"),
    (T([True, False]), T([True, True]), {}, AssertionError, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index (1,)\nGreatest relative difference: 1.0 at index (1,)"),
    (1, 1.0, {}, AssertionError, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (T([[1.0, 2.0], [3, 4]]), T([[1.0, 3.0], [2, 4.0]]).t(), {"check_stride": True}, AssertionError, "The values for attribute 'stride()' do not match: (2, 1) != (1, 2)."),
    (1 + 2j, 1 + 3j, {}, AssertionError, "Scalars are not close!\n\nExpected (1+3j) but got (1+2j).\nAbsolute difference: 1.0 (up to 1e-07 allowed)\nRelative difference: 0.31622776601683794 (up to 1e-07 allowed)"),
    (T([1.0]), None, {}, AssertionError, "None mismatch: tensor([1.]) is not None"),
    (np.ones(2), np.zeros(2), {}, AssertionError, "Tensor-likes are not close!\n\nMismatched elements: 2 / 2 (100.0%)\nGreatest absolute difference: 1.0 at index (0,) (up to 1e-07 allowed)\nGreatest relative difference: inf at index (0,) (up to 1e-07 allowed)"),
    ({"a": [T(1), T(2)]}, {"a": [T(1), T(3)]}, {}, AssertionError, "Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\nRelative difference: 0.3333333432674408\n\nThe failure occurred for item ['a'][1]"),
    (T([1, 2], dtype=tt.uint8), T([1, 7], dtype=tt.uint8), {}, AssertionError, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 5 at index (1,)\nGreatest relative difference: 0.7142857313156128 at index (1,)"),
    (T([1.0, INF, 3.0]), T([1.0, 2.0, 3.0]), {}, AssertionError, "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: inf at index (1,) (up to 1e-05 allowed)\nGreatest relative difference: inf at index (1,) (up to 1.3e-06 allowed)"),
]  # fmt: skip


@pytest.mark.parametrize("told", range(len(TOLD)))
def test_what_is_told(told: int) -> None:
    actual, expected, options, error, said = TOLD[told]
    with pytest.raises(error) as found:
        assert_close(actual, expected, **options)
    assert str(found.value).replace("tritensor", "torch") == said


def test_what_is_close() -> None:
    assert_close(T([1.0, 2.0]), T([1.0, 2.000001]))
    assert_close(T([NAN, INF]), T([NAN, INF]), equal_nan=True)
    assert_close(T([1.0]), T([1.0], dtype=tt.float64), check_dtype=False)
    assert_close(T([1.0, 2.0]), T([1.0, 2.1]), rtol=0.1, atol=0)
    assert_close(T([1.0], dtype=tt.bfloat16), T([1.01], dtype=tt.bfloat16))
    assert_close(T([1.0]), T([1.0], device="cuda"), check_device=False)
    assert_close(1, 1.0, check_dtype=False)
    assert_close({"a": (None, True, 1 + 1j), "b": []}, {"b": [], "a": [None, True, 1 + 1j]})
    assert_close(tt.nn.Parameter(tt.ones(2)), tt.ones(2))
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(tt.nn.Parameter(tt.ones(2)), tt.ones(2), allow_subclasses=False)
    with pytest.raises(AssertionError, match="'device' do not match: cpu != cuda:0"):
        assert_close(T([1.0]), T([1.0], device="cuda"))


@pytest.mark.parametrize(
    "dtype", [tt.bool, tt.uint8, tt.int8, tt.int32, tt.int64, tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64]
)
def test_make_tensor(dtype: tt.dtype) -> None:
    tt.manual_seed(0)
    x = make_tensor(20, 30, dtype=dtype, device="cpu")
    assert (x.dtype, tuple(x.shape)) == (dtype, (20, 30))
    parts = [x.numpy().real, x.numpy().imag] if dtype.is_complex else [x.double().numpy()]
    low, high = (0, 1) if dtype is tt.bool else (0, 9) if dtype is tt.uint8 else (-9, 9)
    assert all(p.min() >= low and p.max() <= high and p.max() - p.min() > 0.8 * (high - low) for p in parts)
    y = make_tensor((5, 4), dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=True)
    assert not y.is_contiguous()
    assert bool((y != 0).all())


def test_make_tensor_within_bounds() -> None:
    tt.manual_seed(0)
    x = make_tensor((1000,), dtype=tt.float32, device="cuda", low=2, high=2.5, requires_grad=True)
    assert x.requires_grad
    assert x.device.type == "cuda"
    assert 2 <= x.min().item() < 2.1
    assert 2.4 < x.max().item() <= 2.5
    assert make_tensor(100, dtype=tt.uint8, device="cpu", low=-5, high=3).max().item() == 2
    assert make_tensor((), dtype=tt.int64, device="cpu").ndim == 0
    for options, said in (
        ({"low": 3, "high": 1}, "low 3 is not below high 1"),
        ({"requires_grad": True}, "which has no gradient"),
        ({"low": 300, "high": 400}, "outside of what uint8 holds"),
    ):
        with pytest.raises(tt.ArgumentError, match=said):
            make_tensor(3, dtype=tt.uint8, device="cpu", **options)
    with pytest.raises(tt.ArgumentError, match="exclude one another"):
        make_tensor(3, dtype=tt.float32, device="cpu", noncontiguous=True, memory_format=tt.contiguous_format)
