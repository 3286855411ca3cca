"""Merging of several traces of one model, run at different input sizes, into one trace whose differing numbers vary with the sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.errors import DynamicAxisError
from tritensor.onnx.sizes import Repeated, VaryingFloat, merge_runs, varies
from tritensor.onnx.tracing import Trace
from tritensor.onnx.tracing.record import Call, Constant, Item, Result, TracedInput

RANDOM_STATE = ("seed", "offset")  # attributes that differ from run to run and do not matter


class MergedTrace:
    """A model as one list of calls. Shapes, attributes and numbers hold a Varying where the runs differ."""

    def __init__(self, traces: list[Trace]) -> None:
        self.traces = traces
        self.items: dict[int, Item] = {}  # by the id of the first trace's
        self.static: set[int] = set()  # ids of merged results that are the same in every run and depend on no input
        first = traces[0]
        self.traced_inputs = [self._merge_input(k) for k in range(len(first.traced_inputs))]
        self._require_same_ops()
        self.calls = [self._merge_call(k) for k in range(len(first.calls))]
        self.outputs = [self._merge_item([t.outputs[k] for t in traces], "an output") for k in range(len(first.outputs))]

    def _merge_input(self, k: int) -> TracedInput:
        first = self.traces[0].traced_inputs[k]
        found = TracedInput(k, _merge_shapes([t.traced_inputs[k] for t in self.traces]), first.dtype)
        self.items[id(first)] = found
        return found

    def _require_same_ops(self) -> None:
        """Raise where the runs called different ops, with the first that differs."""
        first = self.traces[0]
        for other in self.traces[1:]:
            for a, b in zip(first.calls, other.calls, strict=False):
                if a.name != b.name or len(a.inputs) != len(b.inputs) or set(a.attrs) != set(b.attrs):
                    raise DynamicAxisError(
                        f"onnx.export: with inputs of other sizes the model does something else: {a.name} {a.where} is {b.name} {b.where} there. "
                        "A loop or a branch over a dynamic axis cannot stay dynamic; write it with tensor operations, or leave the axis out of "
                        "dynamic_axes"
                    )
            if len(first.calls) != len(other.calls) or len(first.outputs) != len(other.outputs):
                at = (first if len(first.calls) > len(other.calls) else other).calls[min(len(first.calls), len(other.calls))]
                raise DynamicAxisError(
                    f"onnx.export: with inputs of other sizes the model calls {len(other.calls)} ops and not {len(first.calls)}, the first of the "
                    f"others {at.name} {at.where}. A loop over a dynamic axis cannot stay dynamic; write it with tensor operations, or leave "
                    "the axis out of dynamic_axes"
                )

    def _merge_call(self, k: int) -> Call:
        calls = [t.calls[k] for t in self.traces]
        first = calls[0]
        inputs = tuple([self._merge_item([c.inputs[i] for c in calls], f"{first.name} {first.where}") for i in range(len(first.inputs))])
        attrs = {
            name: first.attrs[name]
            if name in RANDOM_STATE
            else _merge_attribute([c.attrs[name] for c in calls], f"{first.name} {first.where}: {name}")
            for name in first.attrs
        }
        made = Call(first.name, k, inputs, attrs, first.scope, first.at)
        static = not varies(attrs) and not any(isinstance(x, Item) and not self.is_static(x) for x in inputs) and not varies(inputs)
        for place, result in enumerate(first.results):
            found = Result(made, place, _merge_shapes([c.results[place] for c in calls]), result.dtype, result.depends, result.tensor)
            made.results.append(found)
            self.items[id(result)] = found
            if static and not result.depends and not varies(found.shape):
                self.static.add(id(found))
        return made

    def is_static(self, x: Item) -> bool:
        """Whether a value is the same in every run, whatever the inputs."""
        return (isinstance(x, Constant) and not varies(x.shape)) or id(x) in self.static

    def _merge_item(self, found: list[Any], where: str) -> Any:
        first = found[0]
        if not isinstance(first, Item):
            return _merge_attribute(found, where)
        # the runs agree op by op, so the same call must feed this input in each of them
        if id(first) in self.items and not isinstance(first, Constant):
            for other in found[1:]:
                if not _is_same_value(first, other):
                    raise DynamicAxisError(
                        f"onnx.export: {where}: with inputs of other sizes another value arrives there; leave the axis out of dynamic_axes"
                    )
            return self.items[id(first)]
        if id(first) not in self.items:
            self.items[id(first)] = _merge_constants(found, where)
        return self.items[id(first)]


def _is_same_value(a: Item, b: Any) -> bool:
    if isinstance(a, TracedInput) and isinstance(b, TracedInput):
        return a.place == b.place
    return isinstance(a, Result) and isinstance(b, Result) and (a.call.number, a.place) == (b.call.number, b.place)


def _merge_shapes(items: list[Any]) -> tuple[Any, ...]:
    ranks = {len(x.shape) for x in items}
    if len(ranks) > 1:
        raise DynamicAxisError(
            f"onnx.export: a value has {sorted(ranks)} dimensions, as the inputs' sizes are; it must have one number of them"
        )
    return tuple([merge_runs([x.shape[d] for x in items]) for d in range(ranks.pop())])


def _merge_constants(found: list[Any], where: str) -> Constant:
    """A tensor from outside: the same in every run, or one number in a shape that varies."""
    first = found[0]
    if any(not isinstance(x, Constant) for x in found):
        raise DynamicAxisError(
            f"onnx.export: {where}: with inputs of other sizes a constant is computed there; leave the axis out of dynamic_axes"
        )
    if all(x.values.shape == first.values.shape and (x.name == first.name != "" or _equal_arrays(x.values, first.values)) for x in found):
        return first  # type: ignore[no-any-return]
    numbers = {x.values.reshape(-1)[0].tobytes() for x in found if x.values.size}
    even = all(_equal_arrays(x.values, np.broadcast_to(x.values.reshape(-1)[:1], x.values.shape)) for x in found if x.values.size)
    if len(numbers) > 1 or not even or {x.values.ndim for x in found} != {first.values.ndim}:
        raise DynamicAxisError(
            f"onnx.export: {where}: a tensor that no op of tritensor made ({first.line}: {first.values.dtype} {first.values.shape}) changes with the "
            "sizes of the inputs; make it with arange, zeros or full of those sizes inside forward, or leave the axis out of dynamic_axes"
        )
    made = Constant("", first.values, first.line)
    made.shape = _merge_shapes(found)
    return made


def _equal_arrays(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _merge_attribute(found: list[Any], where: str) -> Any:
    """One attribute of what it was in every run."""
    first = found[0]
    if all(_equal_attributes(x, first) for x in found[1:]):
        return first
    kinds = {type(x) for x in found}
    if kinds == {int}:
        return merge_runs(found)
    # a factor such as 1 / sqrt(size) is a whole number in some of the runs
    if kinds <= {int, float}:
        return VaryingFloat(tuple(map(float, found)))
    if kinds <= {tuple, list}:
        if len({len(x) for x in found}) == 1:
            return tuple([_merge_attribute([x[k] for x in found], where) for k in range(len(first))])
        # a padded batch of a recurrent net: its number of steps varies, its rows at each step do not
        if all(x and all(y == x[0] for y in x) for x in found):
            return Repeated(_merge_attribute([x[0] for x in found], where), merge_runs([len(x) for x in found]))
    if kinds == {slice}:
        return slice(*[_merge_attribute([getattr(x, part) for x in found], where) for part in ("start", "stop", "step")])
    if kinds == {dict} and len({tuple(x) for x in found}) == 1:
        return {k: _merge_attribute([x[k] for x in found], where) for k in first}
    raise DynamicAxisError(
        f"onnx.export: {where} is {', '.join(map(repr, found))} for inputs of different sizes, which no graph can compute; leave the axis out of "
        "dynamic_axes"
    )


def _equal_attributes(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(_equal_attributes(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
