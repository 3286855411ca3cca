"""Compiled kernels as `kernel[grid](...)` and `kernel.warmup(...)` return them: compiled when they are first asked for something."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.launch import bare, start
from tritensor.cuda.runtime import active
from tritensor.cuda.runtime.active import runtime


class Launched:
    """The kernel of a launch. What Triton's CompiledKernel has (asm, metadata, n_regs, n_spills, kernel[grid]) is looked up at the first question:
    the launch itself needs none of it."""

    def __init__(self, call: LaunchCall) -> None:
        self._call = call

    @cached_property
    def _kernel(self) -> Any:
        kernel = warm_up(self._call)
        # registers and spills are read there: Triton loads a kernel before its first launch, which ours does not take part in
        kernel._init_handles()
        return kernel

    def __getattr__(self, name: str) -> Any:
        # copy, pickle and repr ask for these: no reason to compile
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._kernel, name)

    def __getitem__(self, grid: Any) -> Any:
        return self._kernel[grid]


def warm_up(call: LaunchCall) -> Any:
    """Triton's CompiledKernel for arguments like these on the current GPU; on the emulated device what stands for it.

    Raises LaunchError when it does not compile."""
    if active.emulated():
        return Emulated(call.kernel, call.num_warps, call.num_stages)
    from tritensor.cuda.compiler.compile import compile
    from tritensor.cuda.devices import current_device

    bare(call)
    spec, _ = specialize(call)
    major, minor = runtime().capability(current_device())
    return compile(spec, 10 * major + minor)


class Emulated:
    """A kernel on the emulated device in place of Triton's CompiledKernel. Nothing is compiled there: registers and shared memory are fixed numbers of
    a middling kernel, so that programs that compute an occupancy from them run."""

    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, kernel: Any, num_warps: int, num_stages: int) -> None:
        self.name = kernel.__name__
        self._kernel = kernel
        self.metadata = SimpleNamespace(num_warps=num_warps, num_stages=num_stages, num_ctas=1, shared=1024, name=self.name)

    def _init_handles(self) -> None:
        """There is nothing to load."""

    def __getitem__(self, grid: Any) -> Any:
        def runner(*args: Any, stream: Any = None) -> None:
            start(LaunchCall(self._kernel, tuple(grid), args, {}, self.metadata.num_warps, self.metadata.num_stages))

        return runner
