"""wrap_triton, which programs put around their kernels for PyTorch's tracers: the kernel itself."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.tools.run_script import opened
from tritensor.torch_compat.modules.custom_ops import wrap_triton


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


tuned = triton.autotune([triton.Config({"BLOCK": 8})], key=["n"])(double)


@pytest.mark.parametrize(("kernel", "sizes"), [(double, {"BLOCK": 8}), (tuned, {})], ids=["jit", "autotune"])
def test_a_wrapped_kernel_is_launched_as_it_is(kernel: Any, sizes: dict[str, int]) -> None:
    with opened():
        from torch import library
    x = tt.ones(20, device="cuda")
    library.wrap_triton(kernel)[(3,)](x[:18], 18, **sizes)
    assert x.tolist() == [2.0] * 18 + [1.0] * 2


@pytest.mark.parametrize("wrong", [len, lambda x: x, triton.heuristics({"BLOCK": lambda args: 8})(double)])
def test_what_is_no_kernel_is_refused(wrong: Any) -> None:
    with pytest.raises(RuntimeError, match=r"library\.wrap_triton: \w+ is not a Triton kernel; give a function decorated with triton\.jit"):
        wrap_triton(wrong)
