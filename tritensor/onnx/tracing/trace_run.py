"""One traced run of a model: module scopes and new tensors are recorded, and all hooks are taken off afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.dispatch import apply
from tritensor.ground import shortcuts
from tritensor.ground.process import locks
from tritensor.ground.pytree import tree_flatten
from tritensor.ground.transforms import running
from tritensor.nn.inspection import preserve_state, watch_calls
from tritensor.nn.module import Module
from tritensor.onnx.tracing.level import TraceLevel
from tritensor.onnx.tracing.record import Call, Item, TracedInput
from tritensor.onnx.tracing.traced_ops import install
from tritensor.ops.array import to_host
from tritensor.ops.table import Op, ops, registry
from tritensor.tensor.core import Tensor, new_tensor

CREATION_OPS = ("full", "arange", "linspace", "eye")  # ops without inputs, whose results depend on sizes


class Trace(NamedTuple):
    """What a run did. `outputs`: what it returned, flat; an Item for each tensor, else the object itself."""

    traced_inputs: list[TracedInput]
    calls: list[Call]
    outputs: list[Any]
    values: list[Any]  # the numpy values of the outputs
    written: dict[str, str]


def trace(
    call: Callable[..., Any], inputs: list[Tensor], assemble: Callable[[list[Tensor]], tuple[Any, Any]], warned: bool = False
) -> Trace:
    """Run `call(*args, **kwargs)` on traced stand-ins of the inputs; `assemble` makes args and kwargs of them. Raises what the call raises.

    warned: whether the user has heard what cannot be traced. The module's own tensors are traced as well: what is computed of them alone may be of a
    size that the inputs decide.
    """
    install()
    level = TraceLevel(state_names(call), warned)
    with no_grad(), preserve_state(call), _track_modules(call, level), _creation_hooks, level:
        try:
            stand_ins = [level.add_input(x) for x in inputs]
            if isinstance(call, Module):
                for t in {id(t): t for t in (*call.parameters(), *call.buffers())}.values():
                    level.trace_in_place(t, [], [new_tensor(t._array)])
            args, kwargs = assemble(stand_ins)
            found = call(*args, **kwargs)
            flat = _flatten_outputs(found)
            outputs = [level.item(x) for x in flat]
            values = [to_host(x._array.value._array if isinstance(y, Item) and hasattr(x._array, "level") else x._array) if isinstance(x, Tensor) else x
                      for x, y in zip(flat, outputs, strict=True)]  # fmt: skip
            values = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
        finally:
            level.restore()
    return Trace(level.traced_inputs, level.calls, outputs, values, level.written)


def state_names(call: Any) -> dict[int, str]:
    """The state_dict's name of each tensor of a module, by the id of its array; the first where several share one."""
    names: dict[int, str] = {}
    if isinstance(call, Module):
        for name, t in (*call.named_parameters(remove_duplicate=False), *call.named_buffers(remove_duplicate=False)):
            names.setdefault(id(t._array), name)
    return names


def _track_modules(call: Any, level: TraceLevel) -> AbstractContextManager[None]:
    """Inside, the level knows which module is running."""
    if not isinstance(call, Module):
        return nullcontext()
    names = {id(m): name for name, m in call.named_modules()}
    return watch_calls(
        call, lambda m, args, kwargs: level.stack.append(names[id(m)]), lambda m, args, result: _leave_module(level), outermost=True
    )


def _leave_module(level: TraceLevel) -> None:
    level.stack.pop()


class _CreationHooks:
    """Inside, what a traced thread makes of sizes alone is noted as well. While no thread traces, nobody asks."""

    def __init__(self) -> None:
        self.lock, self.count = locks.lock(), 0
        self.before: dict[str, Any] = {}

    def __enter__(self) -> None:
        with self.lock:
            self.count += 1
            shortcuts.turn("watching", 1)  # plans ask no hooks
            # several threads may trace at once: the first puts the hooks in, the last takes them out
            if self.count == 1:
                self.before = {name: ops.__dict__.get(name) for name in CREATION_OPS}
                for name in CREATION_OPS:
                    ops.__dict__[name] = _record_creation(registry[name], getattr(ops, name))

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.count -= 1
            shortcuts.turn("watching", -1)
            if self.count == 0:
                for name, bound in self.before.items():
                    if bound is None:
                        ops.__dict__.pop(name, None)
                    else:
                        ops.__dict__[name] = bound


_creation_hooks = _CreationHooks()


def _record_creation(op: Op, plain: Callable[..., Any]) -> Callable[..., Any]:
    def make(**attrs: Any) -> Any:
        level = next((level for level in running.levels if isinstance(level, TraceLevel)), None)
        return plain(**attrs) if level is None else level.record_call(op, (), attrs, (apply(op, **attrs),))[0]

    return make


def _flatten_outputs(found: Any) -> list[Any]:
    """What a model returned, flat; also of mappings and dataclasses, as many libraries make them for outputs."""
    if isinstance(found, Mapping):
        return [y for x in found.values() for y in _flatten_outputs(x)]
    # pytree knows no dataclasses, which many libraries return as outputs
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return [y for field in dataclasses.fields(found) for y in _flatten_outputs(getattr(found, field.name))]
    if isinstance(found, list | tuple):
        return [y for x in found for y in _flatten_outputs(x)]
    return tree_flatten(found)[0]
