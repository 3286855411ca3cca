"""Ownership of a launch, told by what tuples and descriptors hold, each time anew."""

from __future__ import annotations

import types

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import tritensor as tt
from tritensor.tools.run_script import opened
from tritensor.triton_kernels.ownership import is_tritensor_call, other_torch


@triton.jit
def kernel(x, y):
    tl.store(y, tl.load(x))


class Foreign:
    """A tensor of another library."""

    def data_ptr(self) -> int:
        return 0


def test_a_holder_is_whose_its_contents_are_at_every_call() -> None:
    """Descriptors and tuples with tensors of two libraries are of the same classes."""
    mine = TensorDescriptor.from_tensor(tt.zeros(16, 16, device="cuda"), [16, 16])
    theirs = types.SimpleNamespace(base=Foreign())
    for _ in range(2):
        assert is_tritensor_call(kernel, (mine,), {})
        assert not is_tritensor_call(kernel, (theirs,), {})
        assert is_tritensor_call(kernel, ((1, tt.zeros(3, device="cuda")),), {})
        assert not is_tritensor_call(kernel, ((1, Foreign()),), {})


def test_this_library_under_the_name_of_torch_is_no_other() -> None:
    with opened():
        import torch

        assert torch.zeros is tt.zeros
        assert not other_torch()
