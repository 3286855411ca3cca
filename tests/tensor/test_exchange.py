"""Memory handed to numpy and over DLPack, and taken from there: shared where it can be, refused where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt

Call = Callable[[tt.Tensor], object]


@pytest.mark.parametrize("call", [lambda x: x.numpy(), np.asarray, lambda x: x.__dlpack__()])
def test_what_lies_on_a_gpu_is_not_handed_over(call: Call) -> None:
    with pytest.raises((TypeError, BufferError), match=r"cuda:0.*use .cpu\(\)"):
        call(tt.ones(2, device="cuda"))


class Foreign:
    """Memory that says it lies on another kind of device."""

    def __dlpack__(self, **_: Any) -> object:
        raise AssertionError("nobody may ask for it")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_from_dlpack() -> None:
    with pytest.raises(tt.DeviceError, match="from_dlpack: the memory is not on the CPU; copy it there first"):
        tt.from_dlpack(Foreign())
    with pytest.raises(ValueError, match="from_dlpack: the memory is on cpu, device is cuda"):
        tt.from_dlpack(np.ones(2), device="cuda", copy=False)
    x = tt.ones(3)
    same, copied = tt.from_dlpack(x), tt.from_dlpack(x, copy=True)
    x.fill_(2.0)
    assert same.tolist() == [2.0] * 3
    assert copied.tolist() == [1.0] * 3
    assert tt.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    assert np.from_dlpack(x).tolist() == [2.0] * 3


def test_numpy_of_another_type_is_a_copy() -> None:
    x = tt.ones(3)
    y = x.__array__(np.float64)
    assert y.dtype == np.float64
    y[0] = 5
    assert x.tolist() == [1.0] * 3
    z = x.__array__(np.float32)
    z[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]
