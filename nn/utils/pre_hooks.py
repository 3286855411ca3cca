"""Forward pre-hooks that compute a tensor of a module: found by the tensor's name, and removed."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module


def list_hooks(module: Module, kind: type) -> list[tuple[int, Any]]:
    """The module's hooks of a class, with the keys they are kept under."""
    if module._hooks is None:
        return []
    return [(key, entry[0]) for key, entry in module._hooks.forward_pre.items() if isinstance(entry[0], kind)]


def remove_hook(module: Module, key: int) -> None:
    """Take a hook away."""
    assert module._hooks is not None
    del module._hooks.forward_pre[key]


def refuse_second(module: Module, kind: type, name: str, what: str) -> None:
    """Raise RuntimeError where a tensor has such a hook already."""
    if any(hook.name == name for _, hook in list_hooks(module, kind)):
        raise RuntimeError(f"{what}: Cannot register two {what} hooks on the same parameter {name}; remove the first")


def take_hook(module: Module, kind: type, name: str, what: str) -> Any:
    """A tensor's hook, which the module has no more. Raises ValueError where there is none."""
    for key, hook in list_hooks(module, kind):
        if hook.name == name:
            remove_hook(module, key)
            return hook
    raise ArgumentError(f"{what} of '{name}' not found in {type(module).__name__}; it was not applied, or removed before")
