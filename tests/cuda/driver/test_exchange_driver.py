"""A GPU's memory handed to other libraries and taken from them: DLPack with its stream rules, and the CUDA array interface, on the stub driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub.child import on_stub
from tritensor.tensor import dlpack


class Wrapped:
    """Another library's array; it notes the stream that it was asked for."""

    def __init__(self, x: Any) -> None:
        self.x, self.asked = x, None

    def __dlpack__(self, **options: Any) -> object:
        self.asked = options.get("stream")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


@on_stub(STUB_DEVICES=2)
def test_there_and_back_on_a_gpu() -> None:
    for index in range(2):
        x = tt.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=f"cuda:{index}").t()
        assert x.__dlpack_device__() == (2, index)
        given = Wrapped(x)
        back = tt.from_dlpack(given)
        assert given.asked == 1
        assert (back.device, back.stride(), back.data_ptr()) == (x.device, x.stride(), x.data_ptr())
        assert back.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]
        before = len(dlpack._exported)
        del x, given
        assert back[1:].cpu().tolist() == [[1, 4], [2, 5]]
        del back
        assert len(dlpack._exported) == before - 1


@on_stub()
def test_the_stream_rules() -> None:
    x = tt.tensor(np.ones(4, np.float32), device="cuda")
    side = tt.cuda.Stream()
    for stream in (None, 1, 2, -1, side.cuda_stream):
        tt.from_dlpack(x.__dlpack__(stream=stream))
    with tt.cuda.stream(side):
        given = Wrapped(x)
        tt.from_dlpack(given)
        assert given.asked == side.cuda_stream
    for stream in (0, "first"):
        with pytest.raises(tt.ArgumentError, match="give a handle, 1 or 2"):
            x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="dl_device is"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert tt.from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == [1.0] * 4
    copied = tt.from_dlpack(x.__dlpack__(copy=True))
    assert copied.data_ptr() != x.data_ptr()


@on_stub()
def test_the_cuda_array_interface() -> None:
    x = tt.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device="cuda")
    assert x.__cuda_array_interface__ == {
        "shape": (2, 3), "typestr": "<f4", "data": (x.data_ptr(), False), "version": 3, "strides": None, "stream": 1,
    }  # fmt: skip
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    assert x.to(tt.bool).__cuda_array_interface__["typestr"] == "|b1"
    assert not hasattr(x.bfloat16(), "__cuda_array_interface__")
    with pytest.raises(tt.GradError, match="requires grad"):
        x.requires_grad_().__cuda_array_interface__  # noqa: B018
