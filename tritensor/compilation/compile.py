"""`compile`: a function or module whose calls run in a lazy region, with PyTorch's arguments and refusals."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from tritensor.compilation.backends import is_eager
from tritensor.compilation.calls import in_region, innermost
from tritensor.compilation.logs import read_environment
from tritensor.compilation.optimized_module import OptimizedModule
from tritensor.compilation.settings import Settings
from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module

MODES = (None, "default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: str | Callable[..., Any] | None = None,
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """The function or module with its ops noted as they are called, fused, and run when a value is asked for; without one, a decorator.

    Python runs at each call: conditions, globals, attributes and counters mean what they mean, nothing is guarded and nothing recompiled. When a call
    returns, its results are computed; those that require grad wait, so that loss, backward and the optimizer's step are fused with it. Functions,
    methods, generators, coroutines, classes (their `__call__`) and callable objects give a function; a Module gives an OptimizedModule.

    backend: None or "tritensor"; "eager" runs the function as it is; PyTorch's names ("inductor", "aot_eager", "cudagraphs", ...) mean ours.
    fullgraph, dynamic, mode, recompile_limit, isolate_recompiles, shapes_spec: accepted; graphs have no breaks that would fail, any shape is taken, and all
    modes run alike as yet. options: names of PyTorch's; they are checked, and change nothing. name: what reports call it. disable: gives the model itself.

    Raises ValueError for a mode, a backend or an option that is not known, and for mode and options together; TypeError for what cannot be called;
    NotImplementedError for a backend that is a function.

    >>> @tt.compile
    ... def f(x):
    ...     return (x * 2 + 1).sum()
    >>> f(tt.ones(3))
    tensor(9.)
    """
    settings = Settings(backend, mode, options, fullgraph, dynamic, name)
    if model is None:
        return lambda f: _compile(f, settings, disable)
    return _compile(model, settings, disable)


def _compile(model: Any, settings: Settings, disable: bool) -> Any:
    if settings.mode not in MODES:
        raise ArgumentError(f"compile: mode {settings.mode!r} is not known; give one of {', '.join(map(repr, MODES[1:]))}")
    if settings.mode is not None and settings.options is not None:
        raise ArgumentError("compile: either mode or options can be specified, but both can't be specified at the same time")
    _check_options(settings.options)
    eager = is_eager(settings.backend)
    read_environment()
    model = innermost(model)
    if not callable(model):
        raise TypeError(f"compile: {type(model).__name__} cannot be called; give a function or a module")
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, settings)
    if inspect.isclass(model):
        return compile_class(model, settings)
    return in_region(model, settings.name, eager)


def compile_class(cls: type, settings: Settings) -> type:
    """A class whose objects' calls are compiled. Raises TypeError where it has no `__call__`."""
    call = next((vars(c)["__call__"] for c in cls.__mro__ if "__call__" in vars(c)), None)
    if call is None:
        raise TypeError(f"compile: {cls.__name__} has no __call__ to compile; compile a method of it")
    cls.__call__ = in_region(call, settings.name, is_eager(settings.backend))  # type: ignore[method-assign]
    return cls


def _check_options(options: dict[str, Any] | None) -> None:
    """Raise ArgumentError for an option that PyTorch has not: one that is misspelt would change nothing, unseen."""
    for given in options or ():
        option = given.replace("-", "_")
        known = _option_names()
        if option not in known:
            near = difflib.get_close_matches(option, known, 1)
            raise ArgumentError(f"compile: options: {given!r} is not known; " + (f"did you mean {near[0]!r}?" if near else "drop it"))


@cache
def _option_names() -> tuple[str, ...]:
    return tuple(resources.files("tritensor.compilation").joinpath("torch_options.txt").read_text().split())
