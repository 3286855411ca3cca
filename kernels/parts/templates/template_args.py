"""`@triton.jit` functions made of one template and others: Triton takes a function from a global only, never from a constexpr."""

from __future__ import annotations

import types
from typing import Any

import triton

from tritensor.cuda.jit import unread


def bound(template: Any, label: str, **functions: Any) -> Any:
    """A template, a plain function, jitted with `functions` under the names that it calls them by; `label` tells it from others of the template.

    Raises NameError at its first compilation where the template calls what nobody gave.
    """
    scope = unread.follow({**template.__globals__, **functions})
    function = types.FunctionType(template.__code__, scope, template.__name__)
    function.__module__, function.__qualname__ = template.__module__, f"{template.__name__.lstrip('_')}_{label}"
    return triton.jit(function)
