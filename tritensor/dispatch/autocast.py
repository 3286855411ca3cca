"""Autocast: what casts the inputs of ops and functions, while a thread wants it. Nothing of it is on the road before somebody does.

An op says in its record how it is cast (`autocast="lower"`), and a function that is made of other ops in a table of the floor above.
Per device type and thread: the lower type, whether it is on, and whether casts of weights are kept.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.dispatch import dispatcher
from tritensor.ground import dtypes, shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import GradError
from tritensor.ground.thread_state import leave_path
from tritensor.ops.array import device_of
from tritensor.ops.table import Op, Ops, ops, registry
from tritensor.ops.table.lookup import changing

_SINGLE = np.dtype(np.float32)
_EIGHT_BYTES = 8


class Settings(threading.local):
    """What a thread has set: by device type ("cpu", "cuda") the lower type, and whether ops are cast to it; what encloses it."""

    def __init__(self) -> None:
        self.types: dict[str, Any] = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
        self.enabled: dict[str, bool] = {"cpu": False, "cuda": False}
        self.keeps = True  # casts of weights
        self.nesting = 0
        self.kept: dict[int, tuple[Any, int, Any]] = {}  # casts of weights: by id the weight, its version, the cast
        self.watches = False  # whether plans are off for it

    def apply(self) -> None:
        """Let what is set hold from the next call on."""
        if any(self.enabled.values()):
            install()
            lower = {k: self.types[k].numpy if on else None for k, on in self.enabled.items()}
            state.casting = Casting(lower, self.kept if self.keeps else None)
        else:
            state.casting = None
        self._watch()

    def _watch(self) -> None:
        """No plan casts: while this thread wants casts there are none."""
        if self.watches is not any(self.enabled.values()):
            self.watches = not self.watches
            shortcuts.turn("watching", 1 if self.watches else -1)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bool], bool]:
        """What is set, for `as_of`."""
        return dict(self.types), dict(self.enabled), self.keeps

    @contextmanager
    def as_of(self, snapshot: tuple[dict[str, Any], dict[str, bool], bool]) -> Iterator[None]:
        """Inside, what was set when the snapshot was taken; casts of weights are kept as long as that lasts."""
        leave_path()
        before = self.types, self.enabled, self.keeps, self.kept
        casting = state.casting  # which backward may have put out
        types, enabled, self.keeps = snapshot
        self.types, self.enabled, self.kept = dict(types), dict(enabled), {}
        self.apply()
        try:
            yield
        finally:
            self.types, self.enabled, self.keeps, self.kept = before
            state.casting = casting
            self._watch()


settings = Settings()


class Casting:
    """How a thread casts now: the numpy type to go down to by device type, None where nothing is cast."""

    __slots__ = ("kept", "lower")

    def __init__(self, lower: Mapping[str, Any], kept: dict[int, tuple[Any, int, Any]] | None) -> None:
        self.lower, self.kept = lower, kept

    @wrapper
    def run(self, call: Callable[..., Any], policy: Mapping[str, Any], who: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`call(*args, **kwargs)` on inputs cast as the policy for their device says; inside of it nothing is cast any more."""
        device = _device(args) or _device(tuple(kwargs.values()))
        how = policy.get(device) if device is not None and self.lower.get(device) is not None else None
        if callable(how):
            how = how(args, kwargs)
        if how is None:
            return call(*args, **kwargs)
        if how == "refused":
            raise GradError(_UNSAFE.format(who=who))
        if how != "plain" and not (how == "float32" and kwargs.get("dtype") is not None):
            target = self._target(how, device, args, kwargs)
            args = tuple([self._cast(x, target, device) for x in args])
            kwargs = {k: self._cast(x, target, device) for k, x in kwargs.items()}
        state.casting = None
        try:
            return call(*args, **kwargs)
        finally:
            state.casting = self

    def _target(self, how: str, device: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if how == "lower":
            return self.lower[device]  # type: ignore[index]
        if how == "widest" and not any(x._array.dtype == _SINGLE for x in _tensors((*args, *kwargs.values())) if _takes(x, device)):
            return None
        return _SINGLE

    def _cast(self, x: Any, target: Any, device: str | None) -> Any:
        if isinstance(x, dispatcher._Tensor):
            if target is None or not _takes(x, device) or x._array.dtype == target:
                return x
            return (
                self._weight(x, target)
                if self.kept is not None and x._tracked and x._node is None and x._view_path is None
                else cast(x, target)
            )
        if type(x) is list or type(x) is tuple:
            return type(x)([self._cast(y, target, device) for y in x])
        return x

    def _weight(self, x: Any, target: Any) -> Any:
        """The cast of a leaf, kept for its next use: weights are used over and over. That of another value, or of no_grad, is another."""
        if x._array.dtype != _SINGLE or not state.enabled:
            return cast(x, target)
        assert self.kept is not None
        version = x._version
        found = self.kept.get(id(x))
        if found is not None and found[0] is x and found[1] == version and found[2]._array.dtype == target:
            return found[2]
        made = cast(x, target)
        self.kept[id(x)] = (x, version, made)
        return made


_UNSAFE = (
    "{who}: it is unsafe to autocast: the logarithm of a probability of 16 bits is off or infinite. Leave the sigmoid out and use "
    "binary_cross_entropy_with_logits (BCEWithLogitsLoss), which is safe, or call it under autocast(enabled=False) on .float()"
)


def cast(x: Any, target: Any) -> Any:
    """x in another type, in the graph."""
    return ops.cast(x, dtype=target)


def _takes(x: Any, device: str | None) -> bool:
    """True where autocast touches a tensor: floating, of fewer than eight bytes, on the device."""
    kind = x._array.dtype
    return dtypes.of(kind).is_floating_point and kind.itemsize < _EIGHT_BYTES and device_of(x._array).type == device


def _tensors(given: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for x in given:
        if isinstance(x, dispatcher._Tensor):
            found.append(x)
        elif type(x) is list or type(x) is tuple:
            found += [y for y in x if isinstance(y, dispatcher._Tensor)]
    return found


def _device(given: tuple[Any, ...]) -> str | None:
    """The type of device of the first tensor."""
    for x in _tensors(given):
        return device_of(x._array).type
    return None


def casting(call: Callable[..., Any], policy: Mapping[str, Any], who: str) -> Callable[..., Any]:
    """A call that casts its inputs where the thread wants it."""

    @wrapper
    @functools.wraps(call)  # whose signature the door reads when arguments do not fit
    def cast_or_not(*args: Any, **kwargs: Any) -> Any:
        now = state.casting
        return call(*args, **kwargs) if now is None else now.run(call, policy, who, args, kwargs)

    cast_or_not.__name__ = cast_or_not.__qualname__ = getattr(call, "__name__", who)
    return cast_or_not


def install() -> None:
    """Let ops with a policy cast from now on. Done once, when a thread first wants it: what never casts never asks."""
    with changing:
        if Ops.bind is not _bind_casting:
            global _bind
            registry.edition += 1  # what another thread is binding now would not cast
            _bind, Ops.bind = Ops.bind, staticmethod(_bind_casting)  # type: ignore[assignment]
            for name, call in tuple(vars(ops).items()):
                record = registry.known(name)
                if record is not None:
                    ops.__dict__[name] = _with_policy(record, call)


_bind: Callable[[Op], Callable[..., Any]]


def _bind_casting(op: Op) -> Callable[..., Any]:
    return _with_policy(op, _bind(op))


def _with_policy(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    how = op.autocast
    return call if how is None else casting(call, how if isinstance(how, Mapping) else {"cpu": how, "cuda": how}, op.name)
