"""Handlers of ops, writes in place and autograd.Functions inside a trace, put before tritensor.func's, which serve all other levels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.autograd.function import FunctionCtx
from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.dispatch import apply
from tritensor.dispatch.nodes import share, written
from tritensor.func import functions, interpreter
from tritensor.func.transform import FuncTransform
from tritensor.func.wrapping import below, highest, level_of, recording, settle
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import TransformError
from tritensor.ground.transforms import TRACE, VMAP, Level, WrappedArray, running, transform
from tritensor.onnx.tracing.level import TraceLevel
from tritensor.onnx.tracing.untraced_values import warn_of_read
from tritensor.ops.table import Op, ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.aliasing.views import find_views, take_path
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation import constructors
from tritensor.tensor.public_api.publish import reroute


def _is_trace(level: Level | None) -> bool:
    return level is not None and level.kind == TRACE


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """An op of which an input is traced: done below, and noted."""
    given = tuple([settle(x) for x in inputs])
    level = highest(given)
    if not isinstance(level, TraceLevel):
        return interpreter.run(op, inputs, attrs)
    # a graph has no writes: only a write that has an op without one for it can be recorded
    if op.mutates:
        return _run_mutating_op(op, given, attrs)
    with recording(level):
        made = apply(op, *[below(x, level) for x in given], **attrs)
    outs = level.record_call(op, given, attrs, made if op.public > 1 else (made,))
    if state.enabled:
        interpreter.record(op, level, given, attrs, outs)
    # a later write through the view must reach its base
    if op.view and level_of(given[0]) is level:
        share(outs[0], given[0], op, attrs)
    return outs if op.public > 1 else outs[0]


def _run_mutating_op(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """An op that overwrites an input: indexed assignment, by its twin that does not."""
    if op.name != "index_assign":
        raise TransformError(
            f"onnx.export: {op.name} overwrites its inputs, and a graph of ONNX writes nothing; call it outside of forward"
        )
    x, v, *indices = inputs
    since = next_sequence()
    value = ops.index_put(x, v, *indices, accumulate=False, **attrs)
    transform.current.adopt(x, value, "setitem")
    transform.current.write(x._array, value, "setitem", since)
    written(op, (x,))


def write(target: WrappedArray, given: Tensor, name: str, since: int | None = None, beside: tuple[Tensor, ...] = ()) -> None:
    """Write over a traced tensor, in memory and in the graph."""
    level = target.level
    if not isinstance(level, TraceLevel):
        interpreter.write(target, given, name, since, beside)
        return
    item = given  # read before the memory is written, of which it may be a part
    level.item(given)
    with recording(level):
        overwrite(target.value, below(given, level), name, since, (given, *beside))
    level.write(target, item)


def adopt(x: Tensor, value: Tensor, name: str) -> None:
    """Let a tensor from outside of the trace, which is about to be written with a traced value, be traced itself: on a copy of its memory."""
    level = _find_trace(value)
    if level is not None and _find_trace(settle(x)) is None:
        root = settle(x if x._view_path is None else x._view_path[0])
        own = new_tensor(root._array).clone()
        views = [v for v in {id(v): v for v in (x, *find_views(root))}.values() if v is not root]
        level.trace_in_place(root, views, [own, *[take_path(v._view_path[1:], own) for v in views]])  # type: ignore[index]
    if not _is_trace(level_of(value)):
        interpreter.adopt(x, value, name)


def _find_trace(x: Tensor) -> TraceLevel | None:
    """The trace that a tensor stands in, below the transforms that may surround it."""
    level = level_of(x)
    while level is not None and level.kind != TRACE:
        x = x._array.value
        level = level_of(x)
    return level if isinstance(level, TraceLevel) and level.alive else None


def detached(array: WrappedArray) -> WrappedArray:
    """The same memory outside of the graph of gradients."""
    made: WrappedArray = interpreter.detached(array)
    if isinstance(array.level, TraceLevel):
        array.level.alias(made, array)
    return made


def draw(op: Op, attrs: dict[str, Any]) -> Tensor:
    """An op that draws numbers."""
    trace = next((level for level in running.levels if isinstance(level, TraceLevel)), None)
    # under vmap its randomness mode decides what is drawn, which tritensor.func knows
    if trace is None or any(level.kind == VMAP for level in running.levels):
        drawn: Tensor = interpreter.draw(op, attrs)
        return drawn
    return trace.record_call(op, (), attrs, (apply(op, **attrs),))[0]


def apply_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An autograd.Function: the ops of its forward."""
    given = tuple([settle(x) for x in args])
    if not _is_trace(highest(given)):
        return functions.apply_function(cls, args, kwargs)
    # with setup_context forward takes no ctx
    if any("setup_context" in base.__dict__ for base in cls.__mro__ if base.__module__ != FunctionCtx.__module__):
        return cls.forward(*given, **kwargs)
    ctx = FunctionCtx()
    ctx.needs_input_grad = (False,) * len(given)
    return cls.forward(ctx, *given, **kwargs)


def like(made: Tensor, x: Tensor) -> Tensor:
    """A new tensor beside a traced one: as it is, or zeros for memory that nothing was written to."""
    return _zeros_for_empty(made) if _is_trace(level_of(x)) else interpreter.like(made, x)


def _zeros_for_empty(made: Tensor) -> Tensor:
    """Zeros, noted, for uninitialised memory; what is noted already as it is."""
    if _is_trace(level_of(made)):
        return made
    zeros: Tensor = ops.full(shape=tuple(made._array.shape), value=0, dtype=made._array.dtype, device=made.device)
    return zeros


def _record_creation(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """tritensor.empty and tensor, which make no call of an op, in a program that has exported something."""

    @wrapper
    @functools.wraps(f)
    def make(*args: Any, **kwargs: Any) -> Tensor:
        made = f(*args, **kwargs)
        trace = next((level for level in running.levels if isinstance(level, TraceLevel)), None)
        if trace is None or level_of(made) is not None:
            return made
        return _zeros_for_empty(made) if f.__name__ == "empty" else trace.trace_new_tensor(made)

    return make


def read(array: WrappedArray) -> None:
    """The values of a traced tensor are about to be read."""
    level = array.level
    if isinstance(level, TraceLevel) and not level.warned:
        slot = level.slots.get(id(array))
        if slot is not None and slot.item.depends:
            warn_of_read()


class TracingTransform(FuncTransform):
    """That of tritensor.func, which notes what happens inside a trace first."""

    run = staticmethod(run)
    draw = staticmethod(draw)
    write = staticmethod(write)
    adopt = staticmethod(adopt)
    like = staticmethod(like)
    detached = staticmethod(detached)
    read = staticmethod(read)
    apply_function = staticmethod(apply_function)


def install() -> None:
    """Put the tracing transform in place."""
    if not isinstance(transform.current, TracingTransform):
        reroute(constructors.empty, _record_creation)
        reroute(constructors.tensor, _record_creation)
        transform.current = TracingTransform()
