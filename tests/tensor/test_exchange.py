"""Memory handed to numpy and over DLPack, and taken from there: shared where it can be, refused where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.tensor import dlpack

Call = Callable[[tt.Tensor], object]


@pytest.mark.parametrize("call", [lambda x: x.numpy(), np.asarray, lambda x: x.__dlpack__()])
def test_what_lies_on_a_gpu_is_not_handed_over(call: Call) -> None:
    with pytest.raises((TypeError, BufferError), match=r"cuda:0.*use .cpu\(\)"):
        call(tt.ones(2, device="cuda"))


class Wrapped:
    """Another library's array, as far as DLPack shows it; `old` is one from before version 1."""

    def __init__(self, x: Any, old: bool = False, device: tuple[int, int] | None = None) -> None:
        self.x, self.old, self.device = x, old, device

    def __dlpack__(self, **options: Any) -> object:
        if self.old and "max_version" in options:
            raise TypeError("no such keyword")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.x.__dlpack_device__()


def test_from_dlpack() -> None:
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


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "dtype",
    [tt.bool, tt.uint8, tt.int16, tt.int64, tt.uint64, tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64, tt.float8_e5m2],
)
def test_every_type_there_and_back(dtype: tt.dtype, old: bool) -> None:
    x = tt.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]).to(dtype)
    for given in (x, x.t(), x[:, 1:], x[0, 0], x[:0], x[::-1]):
        back = tt.from_dlpack(Wrapped(given, old))
        assert (back.dtype, tuple(back.shape)) == (dtype, tuple(given.shape))
        if given.numel() > 1:
            assert back.stride() == given.stride()
            assert back.data_ptr() == given.data_ptr()
        assert back.tolist() == given.tolist()


def test_memory_lives_as_long_as_its_users() -> None:
    before = len(dlpack._exported)
    x = tt.arange(1000)
    capsule = x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    del capsule  # taken by nobody
    assert len(dlpack._exported) == before
    y = tt.from_dlpack(x.__dlpack__())
    z = y[500:]
    del x, y
    assert len(dlpack._exported) == before + 1
    assert z.sum().item() == sum(range(500, 1000))
    del z
    assert len(dlpack._exported) == before


def test_a_capsule_serves_once() -> None:
    capsule = tt.ones(2).__dlpack__()
    tt.from_dlpack(capsule)
    with pytest.raises(tt.ArgumentError, match=r"taken before"):
        tt.from_dlpack(capsule)


def test_what_dlpack_is_asked_for() -> None:
    x = tt.arange(3)
    copied = tt.from_dlpack(x.__dlpack__(max_version=(1, 1), copy=True))
    copied[0] = 7
    assert x.tolist() == [0, 1, 2]
    assert tt.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=False)).data_ptr() == x.data_ptr()
    assert tt.from_dlpack(tt.ones(2, device="cuda").__dlpack__(dl_device=(1, 0))).tolist() == [1.0, 1.0]
    with pytest.raises(BufferError, match=r"dl_device is \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="dl_device"):
        tt.ones(2, device="cuda").__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="requires grad"):
        tt.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(tt.ArgumentError, match="stream 3 for a tensor on the CPU"):
        x.__dlpack__(stream=3)


def test_what_dlpack_brings_that_cannot_be_taken() -> None:
    capsule = tt.ones(2).__dlpack__()
    made = dlpack._Managed.from_address(dlpack._get_pointer(capsule, b"dltensor"))
    made.tensor.device_type = 4
    with pytest.raises(tt.DeviceError, match="type 4; CPU and CUDA are taken"):
        tt.from_dlpack(capsule)
    made.tensor.device_type, made.tensor.lanes = 1, 4
    with pytest.raises(tt.DTypeError, match="32 bits and 4 lanes"):
        tt.from_dlpack(capsule)
    with pytest.raises(TypeError, match="list does not speak DLPack"):
        tt.from_dlpack([1])


def test_numpy_both_ways_and_memory_that_must_not_be_written() -> None:
    a = np.arange(6.0).reshape(2, 3)[:, ::-1]
    x = tt.from_dlpack(a)
    x[0, 0] = 9.0
    assert a[0, 0] == 9.0
    b = np.from_dlpack(x)
    assert b.ctypes.data == a.ctypes.data
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    y = tt.from_dlpack(fixed)
    assert y.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        y.add_(1)
    assert fixed.tolist() == [0.0, 1.0, 2.0]


def test_only_a_gpus_tensor_has_a_cuda_array_interface() -> None:
    assert not hasattr(tt.ones(2), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=r"device cuda is emulated here.* use DLPack, or .cpu\(\).numpy\(\)"):
        tt.ones(2, device="cuda").__cuda_array_interface__  # noqa: B018


@pytest.mark.gpu
def test_a_gpus_memory_over_dlpack() -> None:
    x = tt.arange(6, device="cuda", dtype=tt.float32).reshape(2, 3).t()
    back = tt.from_dlpack(Wrapped(x))
    assert back.device == x.device
    assert back.stride() == x.stride()
    back.add_(1)
    assert x.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    del x
    assert back.sum().item() == 21.0
    seen = back.__cuda_array_interface__
    assert seen == {"shape": (3, 2), "typestr": "<f4", "data": (back.data_ptr(), False), "version": 3, "strides": (4, 12), "stream": 1}
    assert not hasattr(back.bfloat16(), "__cuda_array_interface__")
    with pytest.raises(tt.ArgumentError, match="stream 0"):
        back.__dlpack__(stream=0)
    with tt.cuda.stream(tt.cuda.Stream()):
        y = back * 2
        assert tt.from_dlpack(Wrapped(y)).sum().item() == 42.0
    assert tt.from_dlpack(back.__dlpack__(dl_device=(1, 0))).sum().item() == 21.0
