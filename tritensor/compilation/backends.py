"""Names of backends: ours, the one that compiles nothing, and PyTorch's, which mean ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError

OWN = "tritensor"
_EAGER = ("eager", "eager_debug", "eager_noexcept", "pre_dispatch_eager")
_THEIRS = ("cudagraphs", "inductor")
_DEBUGGING = (
    "aot_eager", "aot_eager_decomp_partition", "aot_eager_decomp_partition_crossref", "aot_eager_decomp_partition_with_mode",
    "aot_eager_default_partitioner", "aot_ts", "invoke_subgraph", "ts",
)  # fmt: skip
_default: str | Callable[..., Any] = OWN


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `compile(..., backend=name)` takes; with `exclude_tags=None` also those that PyTorch has for debugging. All but "eager" are ours."""
    names = {OWN, "eager", *_THEIRS}
    if not exclude_tags:
        names |= {*_EAGER, *_DEBUGGING}
    return sorted(names)


def get_default_backend() -> str | Callable[..., Any]:
    """The backend of `compile` where none is given: "tritensor" unless set_default_backend said another."""
    return _default


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Let `compile` take another backend where none is given; None for our own again. Raises as `compile` does."""
    global _default
    is_eager(backend)
    _default = OWN if backend is None else backend


def is_eager(backend: str | Callable[..., Any] | None) -> bool:
    """Whether a backend compiles nothing. Raises ArgumentError for one that is not known, NotImplementedError for a function."""
    backend = _default if backend is None else backend
    if not isinstance(backend, str):
        who = getattr(backend, "__name__", backend)
        raise NotImplementedError(f"compile: backend {who!r}: a backend that is a function would get graphs as modules, which there are none of yet; "
                                  f"give one of {', '.join(map(repr, list_backends()))}")  # fmt: skip
    if backend not in list_backends(None):
        raise ArgumentError(f"compile: backend {backend!r} is not known; give one of {', '.join(map(repr, list_backends()))}")
    return backend in _EAGER


def meaning_of(backend: str | Callable[..., Any] | None) -> str:
    """What a backend's name means here, where it is PyTorch's; else ""."""
    return f'backend "{backend}" means "{OWN}" here' if backend in (*_THEIRS, *_DEBUGGING) else ""
