"""Providers: modules of higher floors that a lower one calls now and then, registered by the front door, loaded at their first use.

Imports go down the floors only; a batched gradient needs vmap all the same, and a shared tensor the queues that carry it. So the floor below asks for the
module by name, and whoever puts the house together has said who answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_providers: dict[str, tuple[Callable[[], Any], Any]] = {}  # by name: who loads the module, and that, once it is asked for


def register(name: str, load: Callable[[], Any]) -> None:
    """Say who answers for `name`: `load()` imports the module and returns it."""
    _providers[name] = load, None


def provider(name: str) -> Any:
    """The module that answers for `name`, imported if it was not. Raises KeyError where nobody is registered for it."""
    load, module = _providers[name]
    if module is None:
        module = load()
        _providers[name] = load, module
    return module
