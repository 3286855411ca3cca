"""Hooks of a Module: their registration, and the call that runs them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from tritensor.autograd.function import Function
from tritensor.autograd.hooks import RemovableHandle as RemovableHandle
from tritensor.ground.errors import ArgumentError, CheckpointError, GradError
from tritensor.tensor.core import Tensor


class Hooks:
    """The hooks of one module, by kind. A module without any has no such table, and its call skips all of this.

    compiled: what `module.compile()` has made of the call of a module, which is given to it; no copy, and no file, has it.
    """

    KINDS = ("backward", "backward_old", "backward_pre", "forward", "forward_pre", "load_post", "load_pre", "state_post", "state_pre")
    __slots__ = (*KINDS, "compiled")
    backward_old: dict[int, Any]
    backward: dict[int, Any]
    backward_pre: dict[int, Any]
    forward: dict[int, Any]
    forward_pre: dict[int, Any]
    load_post: dict[int, Any]
    load_pre: dict[int, Any]
    state_post: dict[int, Any]
    state_pre: dict[int, Any]

    def __init__(self) -> None:
        self.compiled: Callable[..., Any] | None = None
        for kind in self.KINDS:
            setattr(self, kind, {})

    def __getstate__(self) -> dict[str, dict[int, Any]]:
        return {kind: getattr(self, kind) for kind in self.KINDS}  # slots are no __dict__: copy and pickle ask here

    def __setstate__(self, state: dict[str, dict[int, Any]]) -> None:
        self.compiled = None
        for kind in self.KINDS:
            setattr(self, kind, state.get(kind, {}))  # files of before a kind was there have no table for it


# Where PyTorch's modules keep their hooks: in attributes, which whole modules of its files come with.
_FOREIGN = (
    "_backward_hooks", "_backward_pre_hooks", "_is_full_backward_hook", "_forward_hooks", "_forward_hooks_always_called", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


def strip_foreign_hooks(module: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A module's attributes out of a pickle, PyTorch's as well. Raises CheckpointError for hooks of PyTorch's, which are functions of its own."""
    held = [name for name in _FOREIGN if isinstance(state.get(name), dict) and state[name]]
    if held:
        raise CheckpointError(
            f"{type(module).__name__}: comes with {held[0]} of PyTorch's; remove them before it is saved, or save its state_dict"
        )
    return {name: value for name, value in state.items() if name not in _FOREIGN}


# of every module; a module without hooks of its own has these as its own while there are some (see torch_compat/modules/nn/module_hooks.py)
EVERY = Hooks()
REGISTRATION: dict[str, dict[int, Any]] = {"parameter": {}, "buffer": {}, "module": {}}  # called with what any module registers


def run_registration_hooks(what: str, module: Any, name: str, value: Any) -> Any:
    """What a module is about to register, after the hooks on that: each may give another."""
    for hook in list(REGISTRATION[what].values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def add(module: Any, kind: str, hook: Any, *, first: bool = False) -> RemovableHandle:
    """Register `hook` under `kind`; `first` puts it before those that are there."""
    own: Hooks | None = module.__dict__.get("_hooks")
    if own is None:
        own = module.__dict__["_hooks"] = Hooks()
    if (kind == "backward" and own.backward_old) or (kind == "backward_old" and (own.backward or own.backward_pre)):
        raise GradError("Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them.")
    table: dict[int, Any] = getattr(own, kind)
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if first:
        rest = [(k, v) for k, v in table.items() if k != handle.id]
        for k, v in rest:
            del table[k]
            table[k] = v
    return handle


class Replacing(NamedTuple):
    """A hook behind state_dict() whose result, unless None, takes the place of the state dict. Those that are public change it in place."""

    hook: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.hook(*args)


def run_state_dict_hooks(module: Any, found: Any, prefix: str, local: dict[str, Any]) -> Any:
    """The state dict, once the module's hooks have seen it."""
    for hook in list(module._hooks.state_post.values()):
        changed = hook(module, found, prefix, local)
        if changed is None:
            continue
        if not isinstance(hook, Replacing):
            raise RuntimeError(
                f"state_dict: the post-hook {hook!r} returned a {type(changed).__name__}; "
                "state_dict post-hook must return None: change the dict that it is given"
            )
        found = changed
    return found


class Table(MutableMapping[int, Any]):
    """A module's hooks of one kind as the dictionary that PyTorch keeps them in, which scripts look through, take from and clear."""

    def __init__(self, module: Any, kind: str) -> None:
        self.module, self.kind = module, kind

    def _entries(self) -> dict[int, Any]:
        own: Hooks | None = self.module.__dict__.get("_hooks")
        return {} if own is None else getattr(own, self.kind)

    def __getitem__(self, key: int) -> Any:
        entry = self._entries()[key]
        return entry[0] if self.kind in _FLAGGED else entry

    def __setitem__(self, key: int, hook: Any) -> None:
        if self.module.__dict__.get("_hooks") is None:
            self.module.__dict__["_hooks"] = Hooks()
        self._entries()[key] = (hook, *_FLAGGED[self.kind]) if self.kind in _FLAGGED else hook

    def __delitem__(self, key: int) -> None:
        del self._entries()[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def __repr__(self) -> str:
        return repr(dict(self))


_FLAGGED = {
    "forward": (False, False),
    "forward_pre": (False, False),
    "load_pre": (False,),
}  # what stands behind such a hook unless it is said


def table(kind: str) -> property:
    """The attribute of a module that is its Table of hooks of one kind; what is assigned to it takes the place of all."""

    def assign(module: Any, hooks: Mapping[int, Any]) -> None:
        given, here = dict(hooks), Table(module, kind)
        here.clear()
        here.update(given)

    return property(lambda module: Table(module, kind), assign)


def _list_hooks(hooks: Hooks, kind: str) -> list[Any]:
    """The hooks of one kind that a call runs: those of every module first."""
    # lists, not views: a hook may remove itself while the call runs
    own: dict[int, Any] = getattr(hooks, kind)
    return list(own.values()) if hooks is EVERY else [*getattr(EVERY, kind).values(), *own.values()]


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)` of a module that has hooks or was compiled."""
    compiled = module._hooks.compiled
    return call_with_hooks(module, args, kwargs) if compiled is None else compiled(module, *args, **kwargs)


def call_uncompiled(module: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`module(*args, **kwargs)` of a module that may have been compiled, as if it had not."""
    return module.forward(*args, **kwargs) if module._hooks is None else call_with_hooks(module, args, kwargs)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)` with its hooks: forward pre, forward, and backward ones."""
    hooks: Hooks = module._hooks
    for hook, with_kwargs, _ in _list_hooks(hooks, "forward_pre"):
        args, kwargs = _run_pre_hook(hook, with_kwargs, module, args, kwargs)
    post, pre = _list_hooks(hooks, "backward"), _list_hooks(hooks, "backward_pre")
    watch = _BackwardHooks(module, post, pre) if post or pre else None
    if watch is not None:
        args = watch.inputs(args)
    forward = _list_hooks(hooks, "forward")
    pending = [entry for entry in forward if entry[2]]
    result = None
    try:
        result = module.forward(*args, **kwargs)
        for entry in forward:
            # struck before it runs: a hook that raises is not run again in the handler below
            if entry[2]:
                pending.remove(entry)
            hook, with_kwargs, _ = entry
            changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            result = result if changed is None else changed
        result = result if watch is None else watch.outputs(result)
    except Exception:
        for hook, with_kwargs, _ in pending:  # they run although forward, or a hook before them, failed; the first error is the one to see
            try:
                hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            except Exception as later:
                warnings.warn(
                    f"the forward hook {hook!r} with always_call=True raised {later!r}; what is raised is the error before it", stacklevel=3
                )
        raise
    old = _list_hooks(hooks, "backward_old")
    if old:
        _watch_last(module, result, old)
    return result


def _watch_last(module: Any, result: Any, old: list[Any]) -> None:
    """The old backward hooks see the gradients of the last op of forward, whatever that was."""
    last = result
    while not isinstance(last, Tensor):
        last = next((v for v in last.values() if isinstance(v, Tensor)), None) if isinstance(last, dict) else last[0]
    # a leaf was made by no op whose gradients could be seen
    if last.grad_fn is not None:
        for hook in old:
            last.grad_fn.register_hook(lambda below, above, hook=hook: hook(module, below, above))


def _run_pre_hook(
    hook: Callable[..., Any], with_kwargs: bool, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
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


class _GradientGate(Function):
    """The identity on several tensors; its backward shows all their gradients to `watch` at once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(watch: Callable[[tuple[Any, ...]], tuple[Any, ...]], *tensors: Tensor) -> Any:
        # views: the gate copies nothing
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.watch = inputs[0]
        # hooks see None, not zeros, where an output took no part in the loss
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.watch(grads))


class _BackwardHooks:
    """Full backward hooks of one call: a gate before the module and one behind it see the gradients pass."""

    def __init__(self, module: Any, post: list[Any], pre: list[Any]) -> None:
        self.module, self.post, self.pre = module, post, pre
        self.width = self.out_width = 0  # how many inputs and outputs there are, and the places of those that want gradients
        self.places: tuple[int, ...] = ()
        self.out_places: tuple[int, ...] = ()
        self.grad_outputs: Any = None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.width = len(args)
        gated, self.places = _pass_gate(args, self.input_gradients)
        return gated

    def outputs(self, result: Any) -> Any:
        if not isinstance(result, Tensor | tuple):
            return result  # as in PyTorch, gradients inside other containers are not seen
        given = result if isinstance(result, tuple) else (result,)
        self.out_width = len(given)
        gated, self.out_places = _pass_gate(given, self.output_gradients)
        if isinstance(result, Tensor):
            return gated[0]
        return type(result)(*gated) if hasattr(result, "_fields") else gated

    def output_gradients(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = _spread_gradients(found, self.out_places, self.out_width)
        for hook in self.pre:
            grads = _replace_gradients(hook(self.module, grads), grads, "backward pre-hook")
        self.grad_outputs = grads
        if not self.places:  # no input wants a gradient: there is no gate in front to run the hooks
            for hook in self.post:
                given = hook(self.module, (None,) * self.width, grads)
                if given is not None and not (isinstance(given, tuple) and all(g is None for g in given)):
                    raise RuntimeError(
                        "backward hook: no input of the module requires grad, so the hook has no gradient to replace; return None"
                    )
        return tuple(grads[place] for place in self.out_places)

    def input_gradients(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        shown = _spread_gradients(grads, self.places, self.width)
        for hook in self.post:
            shown = _replace_gradients(hook(self.module, shown, self.grad_outputs), shown, "backward hook")
        return tuple(shown[place] for place in self.places)


def _spread_gradients(grads: tuple[Any, ...], places: tuple[int, ...], width: int) -> tuple[Any, ...]:
    """One entry for each value, None for those that want no gradient."""
    full: list[Any] = [None] * width
    for place, g in zip(places, grads, strict=True):
        full[place] = g
    return tuple(full)


def _pass_gate(values: tuple[Any, ...], watch: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """`values` with those tensors that want gradients led through a gate, and their places."""
    places = tuple(i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad)
    if not places:
        return values, places
    gated = _GradientGate.apply(watch, *[values[i] for i in places])
    out = list(values)
    for i, t in zip(places, gated, strict=True):
        out[i] = t
    return tuple(out), places


def _replace_gradients(changed: Any, grads: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if changed is None:
        return grads
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(grads):
        raise RuntimeError(f"{what}: returned {len(changed)} gradients for {len(grads)}; return one per input, or None")
    return changed


# Forward pre-hooks that compute a tensor of a module: pruning and the older norms, found by the tensor's name.
def list_pre_hooks(module: Any, kind: type) -> list[tuple[int, Any]]:
    """The module's forward pre-hooks of a class, with the keys that they are kept under."""
    own: Hooks | None = module._hooks
    return [] if own is None else [(key, entry[0]) for key, entry in own.forward_pre.items() if isinstance(entry[0], kind)]


def remove_pre_hook(module: Any, key: int) -> None:
    """Take a forward pre-hook away."""
    del module._hooks.forward_pre[key]


def refuse_second_pre_hook(module: Any, kind: type, name: str, what: str) -> None:
    """Raise RuntimeError where a tensor has such a hook already."""
    if any(hook.name == name for _, hook in list_pre_hooks(module, kind)):
        raise RuntimeError(f"{what}: Cannot register two {what} hooks on the same parameter {name}; remove the first")


def take_pre_hook(module: Any, kind: type, name: str, what: str) -> Any:
    """A tensor's hook, which the module has no more. Raises ValueError where there is none."""
    for key, hook in list_pre_hooks(module, kind):
        if hook.name == name:
            remove_pre_hook(module, key)
            return hook
    raise ArgumentError(f"{what} of '{name}' not found in {type(module).__name__}; it was not applied, or removed before")
