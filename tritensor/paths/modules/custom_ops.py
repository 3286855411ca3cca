"""PyTorch's module of ops that programs register: what of it a program needs that launches Triton kernels; no tracer is here that a kernel must be shown to."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
__all__ = ["wrap_triton"]


def wrap_triton(triton_kernel: T, /) -> T:
    """The kernel itself: nothing is traced that would have to be told of its launch. Raises RuntimeError for what is no Triton kernel, as PyTorch does."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if not isinstance(triton_kernel, JITFunction | Autotuner):
        raise RuntimeError(
            f"library.wrap_triton: {type(triton_kernel).__name__} is not a Triton kernel; give a function decorated with triton.jit or triton.autotune"
        )
    return triton_kernel
