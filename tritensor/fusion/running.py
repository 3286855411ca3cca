"""Run of calls and of fused groups on computed arrays: each call by its op's own corner, in order; a value is let go of after its last use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from tritensor.fusion.graph import FORWARD, WRITE, Call, Value, Window, values_in
from tritensor.fusion.tapes import Fused
from tritensor.ground import device_errors
from tritensor.ground.device import device
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.strides import is_dense, is_ordered, lie_alike, memory_extent
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.rows.row_tapes import run_rows
from tritensor.kernels.parts.tapes import on_cpu
from tritensor.kernels.parts.tapes.pointwise import run_tape
from tritensor.ops.array import as_strided, device_of, element_strides, empty, lying, to_layout
from tritensor.ops.lazy_array import window_of
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import Op, registry


def run_calls(calls: Sequence[Call], wanted: set[Value]) -> dict[Value, Exception]:
    """Compute the results of calls, and keep those that are wanted. Gives what could not be computed, with the error of the call that failed, which
    notes its op and the user's line; what does not hang on it is computed all the same."""
    failed: dict[Value, Exception] = {}
    uses: dict[Value, int] = {}
    for call in calls:
        for v in values_in(call.inputs):
            uses[v] = uses.get(v, 0) + 1
    before = here.calling
    try:
        for call in calls:
            here.calling = call.who
            error = next((failed[v] for v in values_in(call.inputs) if v in failed), None) if failed else None
            if error is None:
                try:
                    for value, array in zip(call.results, run(call), strict=True):
                        if value is not None and (value in wanted or uses.get(value)):
                            value.array = laid(call.name, array, value.shape, value.dtype, value.strides if value.fixed else None)
                except Exception as found:
                    found.add_note(f"in {call.name}, called at {call.line}, which ran when a value was asked for")
                    found.ran_late = True  # type: ignore[attr-defined]
                    error = found
            if error is not None:
                failed.update({v: error for v in call.results if v is not None})
            for v in values_in(call.inputs):
                uses[v] -= 1
                if not uses[v] and v not in wanted and v.call is not None:
                    v.array = None
    finally:
        here.calling = before
    return failed


def run(call: Call) -> Sequence[Any]:
    """The arrays that one call makes."""
    given = [_array(x) for x in call.inputs]
    first = next(r for r in call.results if r is not None)
    if call.corner == WRITE:
        return (write(given, first.shape, first.dtype, first.strides, first.device),)
    return run_corner(call.op, call.corner, call.function, given, call.attrs, first.device, len(call.results), call.at)


def run_corner(
    op: Op, corner: str, function: Callable[..., Any] | None, given: list[Any], attrs: dict[str, Any], on: device, count: int,
    at: tuple[CodeType, int] | None = None,
) -> Sequence[Any]:  # fmt: skip
    """The arrays that a corner of an op makes on a device; `function` is that of a gradient, which has `count` results. at: the user's instruction."""
    if corner != FORWARD:
        assert function is not None
        try:
            made = function(*given)
        except RuntimeWarning:
            made = quietly(function, *given)
        found = tuple(made) if type(made) in (tuple, list) else (made,)
        return found + (None,) * (count - len(found))  # inputs that have no gradients
    if on.type != "cpu":
        forward: Any = op.forward
        if op.reports:
            device_errors.enter(op, at)
        recording, key, arrays = forward.find(given, attrs)
        made = recording(arrays) if recording is not None else forward.run_first(key, arrays, given, attrs)
        return made if type(made) is tuple else (made,)
    try:
        made = op.cpu(*given, **attrs)
    except RuntimeWarning:
        made = quietly(op.cpu, *given, **attrs)
    return tuple([to_layout(op.layout, y, given) for y in (made if type(made) is tuple else (made,))])


def _array(x: Any) -> Any:
    """An argument, computed."""
    if type(x) is Value:
        return x.array
    if type(x) is Window:
        return window_of(x.value.array, x.shape, x.dtype, x.strides, x.first)
    return tuple([_array(y) for y in x]) if type(x) is tuple else x


def laid(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None) -> Any:
    """A result of an op as its rules say: an array, and not one of numpy's scalars, that lies so (None: as it comes)."""
    if not isinstance(array, np.ndarray | StridedArray):
        array = np.asarray(array, dtype)
    if tuple(array.shape) != shape or array.dtype != dtype:
        raise RuntimeError(
            f"lazy: {name} gave {array.dtype} {tuple(array.shape)} where its rules said {dtype} {shape}; this is a mistake of the op's, please report it"
        )
    return array if strides is None else lay(array, strides)


def lay(array: Any, strides: tuple[int, ...]) -> Any:
    """The array itself where it has these strides, in elements, or a copy that has."""
    if isinstance(array, np.ndarray):
        item = array.itemsize
        if array.strides == tuple([s * item for s in strides]):
            return array
        if is_dense(array.shape, strides):
            return lying(array, strides)
    if lie_alike(array.shape, element_strides(array), strides):
        return array
    out = room(tuple(array.shape), array.dtype, strides, device_of(array))
    copy_values(out, array)
    return out


def room(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], on: device) -> Any:
    """An uninitialised array that lies so: in memory of its own, which has gaps where the strides leave some."""
    in_order, low, span = _lying(shape, strides)
    if span == 0:
        return empty(shape, dtype, on, None if in_order else strides)
    return as_strided(empty((span,), dtype, on)[-low:], shape, strides)


@lru_cache(maxsize=4096)
def _lying(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[bool, int, int]:
    """Whether elements lie in C order, and, where they leave gaps or go backwards, how far the lowest lies from the first, and how many places they span."""
    if 0 in shape or is_ordered(shape, strides, range(len(shape))):
        return True, 0, 0
    if is_dense(shape, strides):
        return False, 0, 0
    low, high = memory_extent(shape, strides)
    return False, low, high - low + 1


def write(given: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], on: device) -> Any:
    """A value with another one written over a window of it: a copy, as the old value may yet be read."""
    base, item, window = given
    new = room(shape, dtype, strides, on)
    if base is not None:
        copy_values(new, base)
    copy_values(new if window is None else window_of(new, *window), item)
    return new


def copy_values(target: Any, source: Any) -> None:
    """Write an array over another one of its shape and type."""
    if isinstance(target, np.ndarray):
        np.copyto(target, source)
    else:
        registry["copy"].forward(source, out=target)  # type: ignore[misc]


# -- groups
def run_group(group: Fused, inputs: Sequence[Any], numbers: Sequence[Any], outs: Sequence[Any]) -> None:
    """outs = the group's tape of inputs: views over its space, 1 where they repeat. numbers: as kernels get them."""
    if isinstance(outs[0], np.ndarray):
        on_cpu.run(group.tape, inputs, numbers, outs, len(group.shape) - group.kept, group.shape)
    elif group.rows:
        run_rows(group.tape, inputs, numbers, outs, *group.shape)
    else:
        run_tape(group.tape, inputs, numbers, outs)
