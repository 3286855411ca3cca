"""Handles of hooks, and marks on hooks that are not saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tritensor.autograd.hooks import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a tensor's hook as one that is not saved with it, on purpose."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each hook of a tensor that is lost when the tensor is saved, unless it is marked."""
    owner = tensor._node if tensor._node is not None else tensor._extra
    found = {} if owner is None or owner.hooks is None else owner.hooks.tensor
    for hook in found.values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                "@tritensor.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
