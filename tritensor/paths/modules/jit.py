"""torch.jit: nothing is compiled; what may be left as it is is left as it is, with one warning, and all else raises."""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
_warned = False
__all__ = ["Final", "annotate", "export", "ignore", "is_scripting", "is_tracing", "isinstance", "script", "script_if_tracing", "unused"]


def script(obj: T, *_: Any, **__: Any) -> T:
    """The function, class or module itself: it runs as the Python that it is, with the same results. Warns once."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("jit.script: nothing is compiled; the function or module runs as Python, with the same results", stacklevel=2)
    return obj


def script_if_tracing(fn: T) -> T:
    """The function itself: nothing is ever traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that changes nothing."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    """A decorator that changes nothing."""
    return fn


def export(fn: T) -> T:
    """A decorator that changes nothing."""
    return fn


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
    import builtins

    wanted = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple([typing.get_origin(t) or t for t in wanted]))  # type: ignore[misc]


_Decorator = Callable[[T], T]
