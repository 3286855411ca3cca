"""torch.jit: nothing is compiled; functions and modules come back as they are, with one notice, and what would need a compiler raises."""

from __future__ import annotations

import builtins
import contextlib
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from tritensor.ground.errors import TracerWarning as TracerWarning
from tritensor.ground.process.future import Future as Future
from tritensor.nn.compilation import warn_nothing_compiled
from tritensor.nn.module import Module

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
__all__ = [
    "Attribute", "Final", "Future", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "optimize_for_inference", "script", "script_if_tracing", "script_method", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


def script(obj: T, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """The function, class or module itself: it runs as the Python that it is, with the same results. One notice says so."""
    warn_nothing_compiled("jit.script", category=DeprecationWarning)  # PyTorch gives one, too, and programs expect it
    return obj


def trace(
    func: T, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
    strict: bool = True, _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> T:  # fmt: skip
    """The function or module itself; branches of its Python are taken anew at every call. One notice says so.

    Raises RuntimeError without example inputs, as PyTorch does.
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("jit.trace: example_inputs is missing; give the inputs of one call, a tensor or a tuple")
    warn_nothing_compiled("jit.trace", category=DeprecationWarning)
    return func


def trace_module(
    mod: T, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
    strict: bool = True, _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> T:  # fmt: skip
    """The module itself. One notice says so."""
    warn_nothing_compiled("jit.trace_module", category=DeprecationWarning)
    return mod


class ScriptWarning(Warning):
    """The category of what PyTorch's compiler warns of: for filters. Nothing here gives it."""


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accepted: nothing is compiled that could be optimised."""
    yield


class ScriptModule(Module):
    """nn.Module under the name that older code subclasses: what is no compiled module is run as Python."""


def script_method(fn: F) -> F:
    """The function itself: nothing is compiled or traced that would have to know of it."""
    return fn


script_if_tracing = unused = export = _overload = _overload_method = script_method


def interface(obj: T) -> T:
    """The class itself."""
    return obj


def freeze(mod: T, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> T:
    """The module itself, which must be in evaluation mode, as PyTorch asks."""
    if builtins.isinstance(mod, Module) and mod.training:  # builtins: this module has an isinstance of its own, as PyTorch's
        raise RuntimeError("jit.freeze: the module is in training mode; call .eval() first")
    return mod


def optimize_for_inference(mod: T, other_methods: list[str] | None = None) -> T:
    """The module itself."""
    return mod


class Attribute(typing.NamedTuple):
    """A value and the type that a script is told of it; the value alone matters here."""

    value: Any
    type: Any


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function, now; `wait` gives its result."""
    made: Future[Any] = Future()
    made.set_result(func(*args, **kwargs))  # at once and in this thread: an error rises here, not in wait()
    return made


def wait(future: Future[Any]) -> Any:
    """The result of a forked call."""
    return future.wait()


class strict_fusion:
    """A context that changes nothing: nothing is fused that could fail to be."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that changes nothing."""
    return drop if callable(drop) else lambda fn: fn


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """False: this is Python."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether obj is of a type; of `List[int]` and the like the outer type alone is asked."""
    wanted = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple([typing.get_origin(t) or t for t in wanted]))  # type: ignore[misc]


del annotations  # of __future__: jit.annotations is a module of PyTorch's
