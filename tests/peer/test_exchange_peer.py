"""Memory shared with PyTorch over DLPack, both ways, in every type that both have."""

from __future__ import annotations

import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer
TYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("dtype", TYPES)
def test_there_and_back(dtype: torch.dtype) -> None:
    theirs = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]]).to(dtype).t()
    ours = tt.from_dlpack(theirs)
    assert str(ours.dtype).replace("tritensor", "torch") == str(dtype)
    assert (tuple(ours.shape), ours.stride(), ours.data_ptr()) == (tuple(theirs.shape), theirs.stride(), theirs.data_ptr())
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr()
    assert torch.equal(back, theirs)
    back[0, 0] = 1
    assert ours.tolist() == theirs.tolist()


def test_a_capsule_from_either() -> None:
    assert torch.utils.dlpack.from_dlpack(tt.arange(3).__dlpack__()).tolist() == [0, 1, 2]
    assert tt.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3))).tolist() == [0, 1, 2]
