"""Control of what is compiled: functions that are not, what is known and forgotten, and the questions that programs ask."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tritensor.compilation.calls import innermost, opaque
from tritensor.compilation.optimized_module import OptimizedModule
from tritensor.nn.module import Module
from tritensor.ops import replay


def is_compiling() -> bool:
    """False: Python runs at each call of a compiled function, so that programs which skip a check or a print while PyTorch traces need not skip it."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function or module whose ops run as they are called, also inside of a compiled function: what waits is computed first, and explain tells it.

    Without one a decorator. A function gives another one, a Module an OptimizedModule, a class itself with its `__call__` changed. recursive and reason
    change nothing: a function that is called inside is compiled where `compile` has made it. Raises TypeError for what cannot be called.
    """
    if fn is None:
        return disable
    fn = innermost(fn)
    if not callable(fn):
        raise TypeError(f"disable: {type(fn).__name__} cannot be called; give a function or a module")
    if isinstance(fn, Module):
        return OptimizedModule(fn)
    if inspect.isclass(fn):
        fn.__call__ = opaque(fn.__call__)  # type: ignore[method-assign]
        return fn
    return opaque(fn)


def reset() -> None:
    """Forget what compiled functions did, in all threads, and the plans that were made for it: the next calls are noted and fused anew."""
    replay.forget()


def given_back(fn: Any) -> Any:
    """The function itself, or the list of functions: Python runs at each call, and there is no graph that it could be kept in or out of."""
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a function back: the original one runs as the Python that it is. Raises TypeError for what is no function."""
    if not inspect.isroutine(original_fn):
        raise TypeError(f"substitute_in_graph: expects a function but got {type(original_fn)!r}")

    def given(traceable: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isroutine(traceable):
            raise TypeError(f"substitute_in_graph: expects a function but got {type(traceable)!r}")
        return traceable

    return given
