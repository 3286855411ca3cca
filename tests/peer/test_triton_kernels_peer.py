"""One kernel on tensors of PyTorch's and on ours, in one process."""

from __future__ import annotations

import pytest
import triton

import tritensor as tt
from tests.triton_kernels.kernels import scaled_sum
from tritensor.ground.errors import DeviceError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer


def test_tensors_of_both_in_turn_and_never_mixed() -> None:
    theirs = [torch.arange(100.0), torch.ones(100), torch.empty(100)]
    ours = [tt.from_numpy(x.numpy().copy()).cuda() for x in theirs]
    for scale in (2.0, 3.0):
        scaled_sum[(2,)](*theirs, 100, scale, BLOCK=64)
        scaled_sum[(2,)](*ours, 100, scale, BLOCK=64)
        assert theirs[2].tolist() == ours[2].tolist() == (theirs[0] + scale * theirs[1]).tolist()
    with pytest.raises(DeviceError, match=r"tensors of two libraries, tritensor's and torch\.Tensor"):
        scaled_sum[(2,)](ours[0], theirs[1], ours[2], 100, 1.0, BLOCK=64)


def test_a_tuner_of_ours_beside_pytorch() -> None:
    assert triton.runtime.driver.active.get_active_torch_device() == tt.device("cuda", 0)
    tuned = triton.autotune([triton.Config({"BLOCK": b}) for b in (32, 64)], key=["n"])(scaled_sum)
    x, out = tt.ones(64, device="cuda"), tt.empty(64, device="cuda")
    tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, x, out, 64, 1.0)
    assert out.tolist() == [2.0] * 64
