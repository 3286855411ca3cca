"""torch.compile and torch.compiler: nothing is compiled; a function or module comes back as it is, with one notice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.compilation import warn_nothing_compiled

# A misspelt mode is refused, though none does anything.
MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: str | Callable[..., Any] | None = None,
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """The function or module itself, with one notice; without one, a decorator that does the same.

    Raises ValueError for a mode that PyTorch has not, or mode and options together; TypeError for what cannot be called.
    """
    if mode not in MODES:
        raise ArgumentError(f"compile: mode {mode!r} is not known; give one of {', '.join(map(repr, MODES[1:]))}")
    if mode is not None and options is not None:
        raise ArgumentError("compile: either mode or options can be specified, but both can't be specified at the same time")
    if model is None:
        # @compile(...) with settings.
        return lambda f: compile(f, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise TypeError(f"compile: {type(model).__name__} cannot be called; give a function or a module")
    if not disable:
        warn_nothing_compiled("compile")
    return model


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A decorator that changes nothing: the function is never compiled."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function itself, or the list of functions: there is no graph that it could be kept out of."""
    return fn


class set_stance(contextlib.ContextDecorator):
    """A statement, context and decorator about how to compile, which changes nothing."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def reset() -> None:
    """Nothing is kept that could be forgotten."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """[]: there is no compiler."""
    return []


def cudagraph_mark_step_begin() -> None:
    """Nothing captures graphs by itself: there is no step to mark."""
