"""Triton's hooks around a launch, `triton.knobs.runtime.launch_enter_hook.add(function)`, which its profiler and counters of launches set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton import knobs
from triton.compiler.compiler import LazyDict

from tritensor import cuda
from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.triton_kernels.compiled import Launched

_settings = knobs.runtime


def are_set() -> bool:
    """Whether anybody listens."""
    # a chain without calls is no listener: Triton makes one when anybody has ever added a hook
    enter, leave = _settings.launch_enter_hook, _settings.launch_exit_hook
    return bool((enter is not None and getattr(enter, "calls", True)) or (leave is not None and getattr(leave, "calls", True)))


@contextmanager
def around(call: LaunchCall, given: dict[str, Any], launched: Launched) -> Iterator[None]:
    """Call the hooks before and after the launch in the block, with what Triton's give: a LazyDict of the kernel's name and stream, and of what the
    kernel's own `launch_metadata=` says when it is asked. `given` are the arguments by name, as the caller gave them."""
    kernel = call.kernel
    about = LazyDict({"name": kernel.fn.__name__, "function": None, "stream": cuda.current_stream().cuda_stream})
    if kernel.launch_metadata is not None:
        about.add(kernel.launch_metadata, ((*call.grid, 1, 1)[:3], launched.metadata, given))
    if _settings.launch_enter_hook is not None:
        _settings.launch_enter_hook(about)
    yield
    if _settings.launch_exit_hook is not None:
        _settings.launch_exit_hook(about)
