"""Errors on the GPU are said by name, and the process goes on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F

pytestmark = pytest.mark.gpu


def _index(*values: int) -> tt.Tensor:
    return tt.tensor(values).to("cuda")


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "index_get": (lambda: tt.ones(10, 4, device="cuda")[_index(3, 77)], "77"),
    "gather": (lambda: tt.ones(10, device="cuda").gather(0, _index(3, 91)), "91"),
    "embedding": (lambda: F.embedding(_index(1, 55), tt.ones(10, 4, device="cuda")), "55"),
    "cross_entropy": (lambda: F.cross_entropy(tt.ones(2, 4, device="cuda"), _index(1, 33)), "33"),
}


def finished(call: Callable[[], object]) -> None:
    """Call, and wait for the device: a bad index is met by a kernel, after the call returned."""
    result = call()
    tt.cuda.synchronize()
    del result


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_index_is_an_index_error(name: str) -> None:
    call, value = CALLS[name]
    with pytest.raises(IndexError) as raised:
        finished(call)
    assert value in str(raised.value)
    assert "test_errors.py" in str(raised.value), "the line of the call is named"
    tt.cuda.synchronize()  # said once, and the process is alive
    np.testing.assert_array_equal((tt.arange(5, device="cuda") + 1).cpu().numpy(), np.arange(1, 6))


def test_mixed_devices_are_refused() -> None:
    with pytest.raises(tt.DeviceError, match="cuda"):
        tt.ones(3) + tt.ones(3, device="cuda")


def test_a_device_that_is_not_there() -> None:
    n = tt.cuda.device_count()
    with pytest.raises(tt.DeviceError, match=f"cuda:{n}"):
        tt.ones(3, device=f"cuda:{n}")
