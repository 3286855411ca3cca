"""Settings that scripts make before they begin: threads, deterministic algorithms, denormal numbers."""

from __future__ import annotations

import types
import warnings
from typing import Any

from tritensor import cuda
from tritensor.ground.device import as_device
from tritensor.ground.errors import DTypeError
from tritensor.ops import replay
from tritensor.tensor.public_api.publish import checked

_deterministic = {"mode": False, "warn_only": False}  # remembered, because scripts restore what they found
_interop = 1  # PyTorch's own pool; there is none here
_warn_always = False


def get_num_threads() -> int:
    """How many threads matrix products, convolutions and loops over many elements use on the CPU: as many as numpy's BLAS."""
    from tritensor.llvm import threads

    return threads.count()


def set_num_threads(num: int) -> None:
    """Let matrix products, convolutions and loops over many elements use this many threads on the CPU.

    Raises ValueError below 1; warns where numpy's BLAS cannot be asked.
    """
    if num < 1:
        raise ValueError(f"set_num_threads: {num} threads; give 1 or more")
    from tritensor.llvm import threads

    found = threads.blas()
    if found is None:
        warnings.warn(
            "set_num_threads: numpy's BLAS is not one that can be told; set OPENBLAS_NUM_THREADS before Python starts", stacklevel=2
        )
    else:
        found.set(num)
        replay.forget()  # plans share loops among so many


def get_num_interop_threads() -> int:
    """How many threads run whole ops beside one another: 1, or what set_num_interop_threads was given. Ops run one after another."""
    return _interop


def set_num_interop_threads(num: int) -> None:
    """Accepted: ops run one after another, whatever the number. Raises ValueError below 1."""
    global _interop
    if num < 1:
        raise ValueError(f"set_num_interop_threads: {num} threads; give 1 or more")
    _interop = num


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: every op here is deterministic, with or without it."""
    _deterministic.update(mode=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was given last; False before. Every op is deterministic either way."""
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The warn_only that use_deterministic_algorithms was given last."""
    return _deterministic["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by a word or number: "default" (0), "warn" (1), "error" (2). Raises RuntimeError for others."""
    words = ("default", "warn", "error")
    level = words.index(debug_mode) if debug_mode in words else debug_mode  # PyTorch takes both
    if level not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: {debug_mode!r}; give 'default', 'warn', 'error', or 0, 1, 2")
    use_deterministic_algorithms(bool(level), warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as set_deterministic_debug_mode counts."""
    return 0 if not _deterministic["mode"] else 1 if _deterministic["warn_only"] else 2


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers are flushed to zero from now on: False, they are kept always, as numpy keeps them."""
    return False


@checked
def set_warn_always(b: Any, /) -> None:
    """Accepted: a warning is given each time, and Python's filters (`warnings.filterwarnings`) choose. Raises TypeError for what is no bool."""
    global _warn_always
    if not isinstance(b, bool):
        raise DTypeError(f"set_warn_always: {b!r} is of type {type(b).__name__}; give True or False")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """What set_warn_always was given last; False before."""
    return _warn_always


def is_vulkan_available() -> bool:
    """False: devices are the CPU and CUDA's."""
    return False


@checked
def get_device_module(device: Any = None) -> types.ModuleType:
    """`tritensor.cuda` or `tritensor.cpu`: the module of a device, or of the one in use, a GPU where there is one."""
    import importlib

    kind = as_device(device).type if device is not None else "cuda" if cuda.is_available() else "cpu"
    return importlib.import_module(f"tritensor.{kind}")
