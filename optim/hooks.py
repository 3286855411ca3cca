"""Hooks of optimizers: around a step, and around writing and reading a state dict; of one optimizer or of all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.ground.call_site import wrapper
from tritensor.ground.thread_state import here
from tritensor.nn.hooks import RemovableHandle

_before_every: dict[int, Any] = {}
_after_every: dict[int, Any] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer; a pair that it returns replaces (args, kwargs)."""
    return _add(_before_every, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return _add(_after_every, hook)


def _add(hooks: dict[int, Any], hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    behind = dict(hooks) if prepend else {}  # a dict keeps its order: what is to stand behind is put in again
    if prepend:
        hooks.clear()
    hooks[handle.id] = hook
    hooks.update(behind)
    return handle


class Hooked:
    """The part of Optimizer that keeps hooks and calls them."""

    _hooks: dict[str, dict[int, Any]] | None = None
    _steps = 0  # taken so far; schedules look at it
    _stepping = False
    # how programs annotate what they register
    OptimizerPreHook = Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]] | None]
    OptimizerPostHook = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):  # a class's own step: an inherited one has its hooks already
            cls.step = with_hooks(vars(cls)["step"])  # type: ignore[attr-defined]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A step with the hooks called around it; a class's own step is made so without it."""
        return with_hooks(func)

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        if self._hooks is None:
            self._hooks = {}
        return _add(self._hooks.setdefault(kind, {}), hook, prepend)

    def _list_hooks(self, kind: str) -> list[Any]:
        """A copy: a hook may remove itself."""
        return [] if self._hooks is None else list(self._hooks.get(kind, {}).values())

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Before each step: `hook(optimizer, args, kwargs)`, args beginning with the optimizer; a pair that it returns replaces the two."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """After each step: `hook(optimizer, args, kwargs)`."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Before state_dict(): `hook(optimizer)`."""
        return self._register("state_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """After state_dict(): `hook(optimizer, state_dict)`; what it returns, unless None, replaces the state dict."""
        return self._register("state_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Before load_state_dict(): `hook(optimizer, state_dict)`; what it returns, unless None, replaces the state dict."""
        return self._register("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """After load_state_dict(): `hook(optimizer)`."""
        return self._register("load_post", hook, prepend)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's step, with the hooks called around it: once, also where a subclass's step calls its parent's."""

    @wrapper
    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:  # a step inside a step is the parent's, and no second one
            return step(self, *args, **kwargs)
        self._stepping = True
        try:
            if not _before_every and not _after_every and self._hooks is None:
                return step(self, *args, **kwargs)
            given: tuple[Any, ...] = (self, *args)
            for hook in [*_before_every.values(), *self._list_hooks("step_pre")]:
                changed = hook(self, given, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            f"step: the pre-hook {hook!r} returned {changed!r}; it must return None or a pair (args, kwargs)"
                        )
                    given, kwargs = changed
            out = step(*given, **kwargs)
            for hook in [*self._list_hooks("step_post"), *_after_every.values()]:
                hook(self, given, kwargs)
            return out
        finally:
            self._stepping = False
            self._steps += 1
            if here.segment is not None:
                here.segment.end_step()

    return run
