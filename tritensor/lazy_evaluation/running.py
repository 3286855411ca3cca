"""Run of calls: each by its op's own corner on computed arrays, in order; a value is let go of after its last use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.fusion.graph import FORWARD, WRITE, Call, Value, Window, values_in
from tritensor.ground import device_errors
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.thread_state import here
from tritensor.ops.array import empty, lying, to_layout
from tritensor.ops.lazy_array import window_of
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import registry


def run_calls(calls: Sequence[Call], wanted: set[Value]) -> dict[Value, Exception]:
    """Compute the results of calls, and keep those that are wanted. Gives what could not be computed, with the error of the call that failed, which
    notes its op and the user's line; what does not hang on it is computed all the same."""
    failed: dict[Value, Exception] = {}
    uses: dict[Value, int] = {}
    for call in calls:
        for v in values_in(call.inputs):
            uses[v] = uses.get(v, 0) + 1
    before = here.calling
    for call in calls:
        here.calling = call.who
        error = next((failed[v] for v in values_in(call.inputs) if v in failed), None) if failed else None
        if error is None:
            try:
                for value, array in zip(call.results, run(call), strict=True):
                    if value is not None and (value in wanted or uses.get(value)):
                        value.array = _laid(value, array)
            except Exception as found:
                found.add_note(f"in {call.name}, called at {call.line}, which ran when a value was asked for")
                error = found
        if error is not None:
            failed.update({v: error for v in call.results if v is not None})
        for v in values_in(call.inputs):
            uses[v] -= 1
            if not uses[v] and v not in wanted and v.call is not None:
                v.array = None
    here.calling = before
    return failed


def run(call: Call) -> Sequence[Any]:
    """The arrays that one call makes."""
    if call.corner == WRITE:
        return (_write(call),)
    given = [_array(x) for x in call.inputs]
    if call.corner != FORWARD:
        assert call.function is not None
        try:
            made = call.function(*given)
        except RuntimeWarning:
            made = quietly(call.function, *given)
        found = tuple(made) if type(made) in (tuple, list) else (made,)
        return found + (None,) * (len(call.results) - len(found))  # inputs that have no gradients
    op, attrs = call.op, call.attrs
    on = call.results[0].device  # type: ignore[union-attr]
    if on.type != "cpu":
        corner: Any = op.forward
        if op.reports:
            device_errors.enter(op, call.at)
        recording, key, arrays = corner.find(given, attrs)
        made = recording(arrays) if recording is not None else corner.run_first(key, arrays, given, attrs)
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


def _laid(value: Value, array: Any) -> Any:
    """A result as its value says: an array, and not one of numpy's scalars, that lies so where somebody reads a window of it."""
    if not isinstance(array, np.ndarray | StridedArray):
        array = np.asarray(array, value.dtype)
    if tuple(array.shape) != value.shape or array.dtype != value.dtype:
        raise RuntimeError(
            f"lazy: {value.call.name} gave {array.dtype} {tuple(array.shape)} where its rules said {value.dtype} {value.shape}; "  # type: ignore[union-attr]
            "this is a mistake of the op's, please report it"
        )
    return lay(array, value.strides) if value.fixed else array


def lay(array: Any, strides: tuple[int, ...]) -> Any:
    """The array itself where it has these strides, in elements, or a copy that has."""
    if isinstance(array, np.ndarray):
        return lying(array, strides)
    if all([n == 1 or a == b for n, a, b in zip(array.shape, array.strides, strides, strict=True)]):
        return array
    out = empty(array.shape, array.dtype, array.device, strides)
    registry["copy"].forward(array, out=out)  # type: ignore[misc]
    return out


def _write(call: Call) -> Any:
    """A value with another one written over a window of it: a copy, as the old value may yet be read."""
    base, item, window = call.inputs
    (made,) = call.results
    assert made is not None
    new = empty(made.shape, made.dtype, made.device, made.strides)
    if base is not None:
        copy_values(new, _array(base))
    copy_values(new if window is None else window_of(new, *window), _array(item))
    return new


def copy_values(target: Any, source: Any) -> None:
    """Write an array over another one of its shape and type."""
    if isinstance(target, np.ndarray):
        np.copyto(target, source)
    else:
        registry["copy"].forward(source, out=target)  # type: ignore[misc]
