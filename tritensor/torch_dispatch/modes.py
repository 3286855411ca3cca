"""Modes below autograd: TorchDispatchMode, and how calls on plain tensors come to one while any is entered: programs without one pay nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any

from tritensor.autograd.modes import state
from tritensor.dispatch.dispatcher import SCALARS
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.table import Op, Ops, ops
from tritensor.ops.table.lookup import changing, registry
from tritensor.profiler.recording import Patches
from tritensor.tensor.aliasing import inplace
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import protocol
from tritensor.torch_dispatch.asking import ask, below_autograd, setting
from tritensor.torch_dispatch.instances import is_instance
from tritensor.torch_dispatch.interpreter import run_and_record
from tritensor.torch_dispatch.overloads import Overload, aten


class TorchDispatchMode:
    """A context manager to derive from, whose `__torch_dispatch__(self, func, types, args=(), kwargs=None)` is handed every op that runs inside of it, by
    PyTorch's name and below autograd: `func(*args, **kwargs)` computes it. In the handler the mode is off. Ops that PyTorch has not are told as
    `ops.tritensor.<name>.default`; writes in place as the op without, then aten.copy_; backward of what was recorded outside is not told."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                f"TorchDispatchMode: _dispatch_key={_dispatch_key!r}: modes stand below autograd here and nowhere else"
            )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__qualname__}: define __torch_dispatch__(self, func, types, args=(), kwargs=None)")

    def __enter__(self) -> Any:
        _watch(1)
        protocol.setting.lower_modes.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        protocol.setting.lower_modes.pop()
        _watch(-1)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """A mode of the class, to be entered."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets everything pass."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def is_inside_mode() -> bool:
    """Whether a mode of this thread is handed calls."""
    return bool(protocol.setting.lower_modes) and not setting.off


def _told(x: Any) -> bool:
    """Whether a mode is told of a call with this input: tensors that no transform holds, and numbers."""
    if isinstance(x, Tensor):
        return type(x._array) is not WrappedArray or is_instance(x)
    return x is None or isinstance(x, SCALARS)


def _tell(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """A call of an op that a mode is handed."""

    @wrapper
    @functools.wraps(call)
    def told(*inputs: Any, **attrs: Any) -> Any:
        if not is_inside_mode() or not all([_told(x) for x in inputs]):
            return call(*inputs, **attrs)
        return run_and_record(op, inputs, attrs)

    told.untold = call  # type: ignore[attr-defined]
    return told


_entered = 0
_patches = Patches()


def _watch(more: int) -> None:
    """Put every way in which a call begins through the modes while any thread has entered one."""
    global _entered
    protocol.install()
    with changing:
        _entered += more
        if _entered == 1 and more == 1:
            _watch_lookup()
            shortcuts.turn("watching", 1)
            _patches.at_end(lambda: shortcuts.turn("watching", -1))
            _patches.replace_everywhere({
                inplace.compute_into: _not_in_one_pass(inplace.compute_into),
                inplace._fill_directly: _not_in_one_pass(inplace._fill_directly), inplace.overwrite: _overwrite(inplace.overwrite),
            })  # fmt: skip
            for name in ("detach", "item"):
                _patches.put(Tensor, name, _method(vars(Tensor).get(name) or getattr(Tensor, name), _METHODS[name]))
        elif _entered == 0:
            _patches.restore()


_METHODS = {"detach": aten.detach.default, "item": aten._local_scalar_dense.default}


def _watch_lookup() -> None:
    table: dict[str, Any] = ops.__dict__
    find = Ops.__getattr__

    def put(name: str) -> None:
        record = registry.known(name)
        if record is not None:
            table[name] = _tell(record, table[name])

    def find_told(self: Any, name: str) -> Any:
        found = find(self, name)
        if name not in table:
            return found
        put(name)
        return table[name]

    for name in tuple(table):
        put(name)
    _patches.put(Ops, "__getattr__", find_told)

    def restore() -> None:
        for name, call in tuple(table.items()):
            if isinstance(call, FunctionType) and "untold" in vars(call):
                table[name] = vars(call)["untold"]

    _patches.at_end(restore)


def _not_in_one_pass(f: Callable[..., bool]) -> Callable[..., bool]:
    """A write that is made at once where it can be: under a mode the long way is taken, which computes by ops."""

    @wrapper
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> bool:
        return False if is_inside_mode() else f(*args, **kwargs)

    return call


def _overwrite(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The write itself, which the graph does not see: aten.copy_."""

    @wrapper
    @functools.wraps(f)
    def call(x: Tensor, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        recorded = state.enabled and (x._tracked or (isinstance(value, Tensor) and value._tracked))
        if not is_inside_mode() or recorded or not _told(x) or not _told(value):
            return f(x, value, *args, **kwargs)
        with below_autograd():
            if isinstance(value, Tensor):
                ask(aten.copy_.default, (x, value), {})
            else:
                ask(aten.fill_.Scalar, (x, value), {})
        return x

    return call


def _method(f: Callable[..., Any], func: Overload) -> Callable[..., Any]:
    @wrapper
    @functools.wraps(f)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_inside_mode() or args or kwargs or not _told(x):
            return f(x, *args, **kwargs)
        with below_autograd():
            return ask(func, (x,), {})

    return call
