"""Computing in a plan: the leanest function of arrays that gives what an op gives for arrays that lie as these do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.dispatch.plans.recorder import CONSTANT, NUMBER, PLACE, Step, has_floats
from tritensor.ground.numpy_warnings import quietly
from tritensor.ops.array import CudaArray, to_layout
from tritensor.ops.replay import record_view, seed_numbers
from tritensor.ops.table import Op

_MANY = 1 << 16  # elements of a result
_MOST = 1024  # numbers of a type that are kept as arrays
_LARGEST = {np.dtype(letter): float(np.finfo(letter).max) for letter in "fd"}
_EXACT = 1 << 53  # beyond it an int is not exact as float64, which numbers travel as
_numbers: dict[np.dtype[Any], dict[float, Any]] = {dtype: {} for dtype in _LARGEST}


class Computing:
    """What a plan calls for a step, `function`, and how: `numbers` says for each number that it takes which function makes it ready (None: as it is),
    `wrap` that numpy gives a scalar where an array belongs, `together` that a recording takes its arrays in one tuple."""

    def __init__(
        self, function: Callable[..., Any], wrap: bool = False, together: bool = False, ready: Callable[[Any], Any] | None = None
    ) -> None:
        self.function, self.wrap, self.together, self.ready = function, wrap, together, ready


def choose(step: Step) -> Computing | None:
    """How a plan computes a step; None where it cannot."""
    assert step.op is not None
    if any([type(a) is CudaArray for a in step.arrays]) or (not step.arrays and type(step.results[0]) is CudaArray):
        return _on_gpu(step, step.op)
    if any([isinstance(a, np.ndarray) for a in step.results]):
        return _on_cpu(step, step.op)
    return None


def _on_cpu(step: Step, op: Op) -> Computing | None:
    ready = None
    if any([word == NUMBER for word, _ in step.inputs]):
        ready = ready_number(step.arrays)
        if ready is None:
            return None
    constants = {i: v for i, (word, v) in enumerate(step.inputs) if word == CONSTANT}
    prepare = getattr(op.cpu, "planned", None)
    few = step.results[0].size <= _MANY  # of many the call costs nothing beside the work, which is not to be done once more
    if prepare is not None and ready is None and few and len(step.results) == 1:
        lean = quietly(prepare, *step.arrays, **step.attrs)  # it may try its numbers
        given = [a for i, a in enumerate(step.arrays) if i not in constants]
        place = {} if step.drawn is None else dict.fromkeys(PLACE, 0)
        if lean is not None and _same_form(result := quietly(lean, *given, **place), step.results[0]):
            return Computing(lean, type(result) is not np.ndarray)
    bare = getattr(op.cpu, "bare", op.cpu)
    if (
        few
        and not step.attrs
        and not op.view
        and len(step.results) == 1
        and (isinstance(bare, np.ufunc) or bare is not op.cpu)
        and has_floats(step.arrays)
    ):
        given = _with_arrays(step.arrays) if isinstance(bare, np.ufunc) else list(step.arrays)
        result = quietly(bare, *given)
        if _same_form(result, step.results[0]):
            wrap = type(result) is not np.ndarray
            if not isinstance(bare, np.ufunc):
                ready = None if ready is None else _as_it_is
            return Computing(_holding(bare, {i: given[i] for i in constants}, len(given)), wrap, ready=ready)
    function = functools.partial(op.cpu, **step.attrs) if step.attrs else op.cpu
    if not step.settled:
        function = functools.partial(_settled, op.layout, function)
    if constants:
        function = _holding(function, constants, len(step.inputs))
    return Computing(function, True, ready=None if ready is None else _as_it_is)


def _same_form(result: Any, expected: np.ndarray) -> bool:
    """Whether a result is what the op gave, but for its values: an array, or numpy's scalar of one element."""
    if type(result) is not np.ndarray:
        return isinstance(result, np.generic) and expected.shape == () and result.dtype == expected.dtype
    return bool(result.dtype == expected.dtype and result.shape == expected.shape and result.strides == expected.strides)


def _settled(rule: str, function: Callable[..., Any], *arrays: Any, **place: int) -> Any:
    """A result that numpy lays otherwise than the op's rule says."""
    result = function(*arrays, **place)
    if type(result) is tuple:
        return tuple([to_layout(rule, r, arrays) for r in result])
    return to_layout(rule, result, arrays)


def _holding(function: Callable[..., Any], constants: dict[int, Any], count: int) -> Callable[..., Any]:
    """A function of the inputs that are no constants."""
    if not constants:
        return function
    if all([i in constants for i in range(count)]) or list(constants) == list(range(len(constants))):
        return functools.partial(function, *constants.values())
    if count == 2:
        second = constants[1]
        return lambda x: function(x, second)
    if count == 3 and list(constants) == [2]:
        third = constants[2]
        return lambda x, y: function(x, y, third)
    if count == 3 and list(constants) == [1, 2]:
        second, third = constants[1], constants[2]
        return lambda x: function(x, second, third)

    def call(*given: Any) -> Any:
        rest = iter(given)
        return function(*[constants[i] if i in constants else next(rest) for i in range(count)])

    return call


# -- numbers
def _with_arrays(arrays: Sequence[Any]) -> list[Any]:
    """Python's numbers among them as arrays of the others' type, which a ufunc takes in half the time; where that is the same."""
    dtype = next(a.dtype for a in arrays if type(a) is np.ndarray)
    return [as_array(a, dtype) if type(a) in (int, float) else a for a in arrays]


def as_array(number: float, dtype: np.dtype[Any]) -> Any:
    """A Python number as an array of a floating type; itself where that might not be the same."""
    largest = _LARGEST[dtype]
    if not number or not -largest <= number <= largest:  # 0.0 and -0.0 are one key of a dict; what the type cannot hold is numpy's to judge
        return number
    numbers = _numbers[dtype]
    if (found := numbers.get(number)) is not None:
        return found
    if len(numbers) >= _MOST:
        numbers.clear()
    found = numbers[number] = np.array(number, dtype)
    return found


def _as_it_is(number: Any) -> Any:
    return number


def ready_number(arrays: Sequence[Any]) -> Callable[[Any], Any] | None:
    """What makes a number of a later call ready for a step, or raises where the step is not for it; None where it cannot be told."""
    kinds = {a.dtype for a in arrays if type(a) is np.ndarray}
    if len(kinds) > 1:  # a condition among them
        kinds.discard(np.dtype(np.bool_))
    if len(kinds) != 1:
        return None
    (dtype,) = kinds
    if dtype in _LARGEST:
        return functools.partial(_ready_float, _numbers[dtype].get, dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return functools.partial(_ready_int, limits.min, limits.max)
    return None


def _ready_float(get: Callable[[Any], Any], dtype: np.dtype[Any], number: Any) -> Any:
    found = get(number)
    if found is not None:
        return found
    if type(number) is int and not -_EXACT <= number <= _EXACT:
        raise OverflowError
    return as_array(number, dtype)


def _ready_int(low: int, high: int, number: Any) -> Any:
    if type(number) is not int or not low <= number <= high:
        raise OverflowError
    return number


# -- a GPU
def _on_gpu(step: Step, op: Op) -> Computing | None:
    if op.host is not None:
        return None
    if op.view:
        made: dict[Any, Any] = {}
        record_view(made, None, step.arrays[0], step.results[0])
        recording = made.get(None)
        return None if recording is None else Computing(recording, together=True)
    corner: Any = op.forward
    recording = None if step.corner_key is None else corner.recordings.get(step.corner_key)
    if recording is None:
        return None
    if any([word == NUMBER for word, _ in step.inputs]):
        return Computing(_with_number(corner.recordings, step), ready=_as_it_is) if len(step.inputs) == 2 else None
    if step.drawn is not None:
        return Computing(lambda *arrays, seed, offset: recording((*arrays, *seed_numbers(seed, offset))))
    return Computing(recording, together=True)


def _with_number(known: dict[Any, Any], step: Step) -> Callable[..., Any]:
    """A call of an array and a number: the recording of this very number, or KeyError."""
    left = step.inputs[0][0] != NUMBER
    layout = step.arrays[0 if left else 1].layout()

    def call(a: Any, b: Any) -> Any:
        array, number = (a, b) if left else (b, a)
        part = (int, number) if type(number) is int else (float, number or str(number))  # 0.0 and -0.0 are two keys
        return known[(layout, part) if left else (part, layout)]((array,))

    return call
