"""torch.nn.modules.module: hooks on every module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.nn.hooks import EVERY, REGISTRATION, RemovableHandle
from tritensor.nn.module import Module

Hook = Callable[..., Any]
_KINDS = ("forward_pre", "forward", "backward_pre", "backward", "backward_old")


class _Everywhere(RemovableHandle):
    """A handle of a hook on every module: with the last of them modules without hooks of their own are without any again."""

    __slots__ = ()

    def remove(self) -> None:
        super().remove()
        if not any(getattr(EVERY, kind) for kind in _KINDS):  # Module.__call__ asks for hooks once, and skips all where there are none
            Module._hooks = None


def _add(kind: str, entry: Any) -> RemovableHandle:
    handle = _Everywhere(getattr(EVERY, kind))
    getattr(EVERY, kind)[handle.id] = entry
    Module._hooks = EVERY
    return handle


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Before the forward of every module, `hook(module, args)` -> None or new args."""
    return _add("forward_pre", (hook, False, False))  # neither with keywords nor called after an error


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """After the forward of every module and before its own hooks, `hook(module, args, output)` -> None or a new output."""
    return _add("forward", (hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """When the gradients of any module's outputs are there: `hook(module, grad_output)` -> None or new ones."""
    return _add("backward_pre", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """When the gradients of any module's inputs are there: `hook(module, grad_input, grad_output)` -> None or new grad_input."""
    return _add("backward", hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The old form: the gradients of the last op of any module's forward. Use register_module_full_backward_hook."""
    return _add("backward_old", hook)


def _registration(what: str, hook: Hook) -> RemovableHandle:
    handle = RemovableHandle(REGISTRATION[what])
    REGISTRATION[what][handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """When any module registers a buffer: `hook(module, name, buffer)` -> None or another one."""
    return _registration("buffer", hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """When any module registers a child: `hook(module, name, child)` -> None or another one."""
    return _registration("module", hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """When any module registers a parameter: `hook(module, name, parameter)` -> None or another one."""
    return _registration("parameter", hook)
