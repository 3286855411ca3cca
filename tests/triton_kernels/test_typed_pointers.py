"""An object with data_ptr() and a type of ours among the arguments: all that Triton asks of a tensor."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tests.triton_kernels.kernels import scaled_sum
from tritensor.cuda.emulator.sanitizer import SanitizerError


class Pointer:
    """An address in the middle of a tensor, and a type."""

    def __init__(self, of: tt.Tensor, offset: int, dtype: Any = None) -> None:
        self._of, self.dtype = of, dtype or of.dtype
        self._at = of.data_ptr() + offset * self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._at


def test_a_kernel_reads_and_writes_behind_it() -> None:
    x, out = tt.arange(64, dtype=tt.float32, device="cuda"), tt.zeros(64, device="cuda")
    for _ in range(2):
        scaled_sum[(1,)](Pointer(x, 8), x, Pointer(out, 4), 16, 2.0, BLOCK=16)
    assert out.tolist() == [0.0] * 4 + [8.0 + 3 * i for i in range(16)] + [0.0] * 44
    whole = tt.zeros(8, dtype=tt.int32, device="cuda")
    scaled_sum[(1,)](Pointer(whole, 0), Pointer(whole, 0), Pointer(whole, 0, tt.float32), 8, 2.0, BLOCK=8)
    assert whole.tolist() == [0] * 8


def test_beyond_every_tensor_is_refused() -> None:
    x, out = tt.ones(64, device="cuda"), tt.zeros(64, device="cuda")
    with pytest.raises(SanitizerError, match="which is in no live tensor"):
        scaled_sum[(1,)](Pointer(x, 60), x, out, 16, 2.0, BLOCK=16)


@on_stub()
def test_the_address_reaches_the_driver() -> None:
    x, out = tt.ones(64, device="cuda"), tt.zeros(64, device="cuda")
    for offset in (16, 17, 16):
        scaled_sum[(1,)](Pointer(x, offset), x, out, 16, 2.0, BLOCK=16)
        last = control.launches()[-1]
        assert last.values[:3] == (x.data_ptr() + 4 * offset, x.data_ptr(), out.data_ptr())
