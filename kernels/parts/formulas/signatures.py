"""Signatures of functions that are made: the names that registration reads off them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def signature(names: Sequence[str]) -> inspect.Signature:
    """The signature of a function that takes `*values`, for registration to read: the names of its values."""
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])


def by_names(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A gradient's corner of `function(gradient, **values)` that asks for the values of these names. What it hands on to another op as it is, such as the
    sizes of windows, need not be spelled out then."""

    def corner(gradient: Any, *values: Any) -> Any:
        return function(gradient, **dict(zip(names, values, strict=True)))

    corner.__signature__ = signature(("gradient", *names))  # type: ignore[attr-defined]
    return corner
