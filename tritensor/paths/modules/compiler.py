"""torch.compiler: nothing is compiled, so what keeps code from being compiled has nothing to do."""

from __future__ import annotations

from typing import Any


def is_compiling() -> bool:
    """False."""
    return False


def is_dynamo_compiling() -> bool:
    """False."""
    return False


def is_exporting() -> bool:
    """False."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A decorator that changes nothing: the function is never compiled."""
    return (lambda f: f) if fn is None else fn


def reset() -> None:
    """Nothing is kept that could be forgotten."""


def cudagraph_mark_step_begin() -> None:
    """Nothing captures graphs by itself: there is no step to mark."""
