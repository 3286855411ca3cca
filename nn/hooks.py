"""Hooks of a Module: where they are kept, and the call that runs them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tritensor.autograd.function import Function
from tritensor.tensor.core import Tensor

_next_id = count().__next__


class RemovableHandle:
    """Takes a hook away again: `handle.remove()`, or at the end of a `with`."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = _next_id()

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one module, by kind. A module without any has no such table, and its call skips all of this."""

    __slots__ = ("backward", "backward_pre", "forward", "forward_pre", "load_post", "load_pre", "state_post", "state_pre")
    backward: dict[int, Any]
    backward_pre: dict[int, Any]
    forward: dict[int, Any]
    forward_pre: dict[int, Any]
    load_post: dict[int, Any]
    load_pre: dict[int, Any]
    state_post: dict[int, Any]
    state_pre: dict[int, Any]

    def __init__(self) -> None:
        for kind in self.__slots__:
            setattr(self, kind, {})

    def __getstate__(self) -> dict[str, dict[int, Any]]:
        return {kind: getattr(self, kind) for kind in self.__slots__}

    def __setstate__(self, state: dict[str, dict[int, Any]]) -> None:
        for kind in self.__slots__:
            setattr(self, kind, state.get(kind, {}))


def add(module: Any, kind: str, hook: Any, *, first: bool = False) -> RemovableHandle:
    """Register `hook` under `kind`; `first` puts it before those that are there."""
    if module._hooks is None:
        module.__dict__["_hooks"] = Hooks()
    table: dict[int, Any] = getattr(module._hooks, kind)
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if first:
        rest = [(k, v) for k, v in table.items() if k != handle.id]
        for k, v in rest:
            del table[k]
            table[k] = v
    return handle


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)` with its hooks: forward pre, forward, and full backward ones."""
    hooks: Hooks = module._hooks
    for hook, with_kwargs, _ in list(hooks.forward_pre.values()):
        args, kwargs = _pre(hook, with_kwargs, module, args, kwargs)
    watch = _Backward(module, hooks) if hooks.backward or hooks.backward_pre else None
    if watch is not None:
        args = watch.inputs(args)
    pending = [key for key, (_, _, always) in hooks.forward.items() if always]
    result = None
    try:
        result = module.forward(*args, **kwargs)
        for key, (hook, with_kwargs, _) in list(hooks.forward.items()):
            if key in pending:
                pending.remove(key)
            changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            result = result if changed is None else changed
        return result if watch is None else watch.outputs(result)
    except Exception:
        for key in pending:  # always_call hooks run although forward, or a hook before them, failed; the first error is the one to see
            hook, with_kwargs, _ = hooks.forward[key]
            if with_kwargs:
                hook(module, args, kwargs, result)
            else:
                hook(module, args, result)
        raise


def _pre(hook: Callable[..., Any], with_kwargs: bool, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    if not with_kwargs:
        changed = hook(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(f"forward pre-hook: a hook with_kwargs=True returns None or (args, kwargs), not {type(changed).__name__}")
    return changed


class _Gate(Function):
    """The identity on several tensors; its backward shows all their gradients to `watch` at once."""

    @staticmethod
    def forward(ctx: Any, watch: Callable[[tuple[Any, ...]], tuple[Any, ...]], *tensors: Tensor) -> Any:
        ctx.watch = watch
        ctx.set_materialize_grads(False)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.watch(grads))


class _Backward:
    """Full backward hooks of one call: a gate before the module and one behind it see the gradients pass."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self.module = module
        self.post = list(hooks.backward.values())
        self.pre = list(hooks.backward_pre.values())
        self.width = 0
        self.places: tuple[int, ...] = ()
        self.grad_outputs: Any = None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.width = len(args)
        gated, self.places = _through(args, self.input_gradients)
        return gated

    def outputs(self, result: Any) -> Any:
        if isinstance(result, Tensor):
            return _through((result,), self.output_gradients)[0][0]
        if isinstance(result, tuple):
            gated = _through(result, self.output_gradients)[0]
            return type(result)(*gated) if hasattr(result, "_fields") else gated
        return result  # as in PyTorch, gradients inside other containers are not seen

    def output_gradients(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.pre:
            grads = _replaced(hook(self.module, grads), grads, "backward pre-hook")
        self.grad_outputs = grads
        if not self.places:  # no input wants a gradient: there is no gate in front to run the hooks
            for hook in self.post:
                if hook(self.module, (None,) * self.width, grads) is not None:
                    raise RuntimeError(
                        "backward hook: no input of the module requires grad, so the hook has no gradient to replace; return None"
                    )
        return grads

    def input_gradients(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full: list[Any] = [None] * self.width
        for place, g in zip(self.places, grads, strict=True):
            full[place] = g
        shown = tuple(full)
        for hook in self.post:
            shown = _replaced(hook(self.module, shown, self.grad_outputs), shown, "backward hook")
        return tuple(shown[place] for place in self.places)


def _through(values: tuple[Any, ...], watch: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """`values` with those tensors that want gradients led through a gate, and their places."""
    places = tuple(i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad)
    if not places:
        return values, places
    gated = _Gate.apply(watch, *[values[i] for i in places])
    out = list(values)
    for i, t in zip(places, gated, strict=True):
        out[i] = t
    return tuple(out), places


def _replaced(changed: Any, grads: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if changed is None:
        return grads
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(grads):
        raise RuntimeError(f"{what}: returned {len(changed)} gradients for {len(grads)}; return one per input, or None")
    return changed
