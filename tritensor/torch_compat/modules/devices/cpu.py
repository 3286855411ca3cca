"""torch.cpu: the one CPU, as the other devices' modules describe theirs."""

from __future__ import annotations

import contextlib
from typing import Any


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing is to be chosen."""


def synchronize(device: Any = None) -> None:
    """Nothing runs in the background."""


class Stream:
    """Stands for the one order in which the CPU works."""

    def __init__(self, priority: int = -1) -> None: ...  # PyTorch's default, which nobody reads

    def wait_stream(self, stream: Any) -> None: ...


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return Stream()


def stream(stream: Stream) -> contextlib.AbstractContextManager[None]:
    """A context that changes nothing."""
    return contextlib.nullcontext()
