"""Hooks on gradients: where a tensor or a node keeps them, and the handles that remove them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

from tritensor.ground.process import locks

_next_id = count().__next__  # one step of the interpreter: two threads never get one number
_making = locks.lock()


class Hooks:
    """The hooks of one gradient, in the order in which they run.

    `tensor` see the gradient of a tensor, then `keepers` (weak references to tensors) store it as `.grad`, then `before` and `after`
    stand on either side of the node that takes it. Each is a dictionary by the number of its handle: equal hooks stay two hooks.
    """

    __slots__ = ("after", "before", "keepers", "tensor")
    post = False  # whether any leaf has had hooks for when its gradient was added: a walk that has none looks for none

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.keepers: list[weakref.ref[Any]] = []
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}


class RemovableHandle:
    """Takes an entry of a dictionary of hooks away again, once: `handle.remove()`, or at the end of a `with`. `id` is its key."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks_dict: dict[int, Any]) -> None:
        self.id = _next_id()
        self._hooks = hooks_dict

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    @property
    def hooks_dict_ref(self) -> Callable[[], dict[int, Any]]:
        """PyTorch's reference to the dictionary: called, it gives that."""
        return lambda: self._hooks

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Handle(RemovableHandle):
    """The same, which has put its hook there."""

    __slots__ = ()

    def __init__(self, calls: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        super().__init__(calls)
        calls[self.id] = hook


def hooks_of(owner: Any) -> Hooks:
    """The hooks of a node, or of a leaf's extras, made at their first use; two threads that hook one at once share them."""
    if owner.hooks is None:
        with _making:
            if owner.hooks is None:
                owner.hooks = Hooks()
    found: Hooks = owner.hooks
    return found


def keep_grad(owner: Any, tensor: Any) -> None:
    """Let the gradient that arrives at a node stay in `.grad` of the tensor that hangs there."""
    hooks_of(owner).keepers.append(weakref.ref(tensor))


def forget_grad(owner: Any, tensor: Any) -> None:
    """Undo keep_grad: the tensor hangs elsewhere now."""
    if owner is not None and owner.hooks is not None:
        owner.hooks.keepers = [r for r in owner.hooks.keepers if r() is not tensor]  # a new list: a walk may be going through the old one
