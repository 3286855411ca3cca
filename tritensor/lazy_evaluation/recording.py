"""Recording: what an op, a gradient of one, and a write in place become while calls are noted; and what runs at once all the same."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad, state
from tritensor.autograd.node import Node, wrap_gradient
from tritensor.dispatch import dispatcher, meta
from tritensor.dispatch.nodes import record_node, share
from tritensor.fusion.graph import BACKWARD, FORWARD, Call, Value
from tritensor.ground import dtypes
from tritensor.ground.call_site import user_instruction
from tritensor.ground.device import cpu
from tritensor.ground.errors import GradError
from tritensor.ground.strides import contiguous_strides, elementwise_strides
from tritensor.ground.thread_state import here, leave_path
from tritensor.ground.transforms import WrappedArray, transform
from tritensor.lazy_evaluation.adoption import adopt, may_adopt
from tritensor.lazy_evaluation.segment import LONGEST, Segment, attributes
from tritensor.ops import replay
from tritensor.ops.array import device_of, element_strides, refuse_no_kernel_type
from tritensor.ops.lazy_array import (
    LazyArray,
    at_once,
    compute_now,
    is_lent,
    is_shared,
    learnt_strides,
    run_before_write,
    settle,
    show_computed,
)
from tritensor.ops.strided_array import MetaArray, StridedArray
from tritensor.ops.table import Op
from tritensor.ops.table.description import bare_signature
from tritensor.tensor.aliasing.views import copy_into


# -- ops
def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Note an op's call, checked by its shape rule as anywhere, and give its results as lazy tensors. What cannot wait runs: see `_runs_at_once`."""
    Tensor = dispatcher._Tensor
    arrays: list[Any] = []
    segment: Segment | None = here.segment
    wanted = False
    for x in inputs:
        if isinstance(x, Tensor):
            a = x._array
            if type(a) is LazyArray:
                if a.storage.value is None:
                    a = a.settled()
                    x._set_array(a)
                elif segment is None:
                    segment = a.storage.segment
            elif type(a) is np.ndarray:
                del a
                is_lent(x)  # or not any more
                a = x._array
            elif type(a) is WrappedArray:
                return transform.current.run(op, inputs, attrs)
            elif type(a) is MetaArray:
                return meta.run(op, inputs, attrs)
            wanted = x._tracked or wanted
            arrays.append(a)
        elif (x is None and len(arrays) >= op.required) or (
            op.broadcasts and isinstance(x, dispatcher.SCALARS) and not isinstance(x, np.generic)
        ):
            arrays.append(x)
        elif op.broadcasts and isinstance(x, np.generic):
            return dispatcher.apply(op, *dispatcher._python_numbers(inputs), **attrs)
        else:
            raise dispatcher.foreign(op, inputs, x)
    if segment is not None and segment.cursor.follows:
        segment.cursor.leave()
        return run(op, inputs, attrs)
    place = _device_of(op, inputs, arrays, attrs)
    if segment is None or _runs_at_once(op, arrays, place, attrs):
        return _run_now(op, inputs, attrs)
    specs = _specs_of(op, arrays, attrs)
    if op.view:
        results: tuple[Any, ...] = (op.cpu(*arrays, **attrs),)
    else:
        results = _note(segment, op, arrays, attrs, specs, place)
        _note_versions(segment, inputs, arrays)
    outs = tuple([dispatcher._new(r) for r in results[: op.public]])
    node = None
    if wanted and state.enabled and op.rule is not None and any([dtypes.has_gradient(y.dtype) for y in results[: op.public]]):
        node = record_node(op, inputs, attrs, outs, results)
        if node.meta is None:
            node.meta = tuple([(x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in inputs])
    if op.view:
        share(outs[0], inputs[0], op, attrs)
    if node is not None:
        segment.nodes.append(weakref.ref(node))
    if len(segment.calls) >= LONGEST:
        segment.settle(why=f"{LONGEST} calls")
    return outs if op.public > 1 else outs[0]


def _device_of(op: Op, inputs: tuple[Any, ...], arrays: list[Any], attrs: dict[str, Any]) -> Any:
    """Where a call is to run; raises DeviceError for operands on several devices."""
    on = {device_of(a) for a in arrays if isinstance(a, np.ndarray | StridedArray)}
    if len(on) > 1:
        raise dispatcher.mixed_devices(op, inputs)
    return on.pop() if on else attrs.get("device", cpu)


def _specs_of(op: Op, arrays: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """What the op's shape rule says of its results. Raises what that raises, in the words of the dispatcher."""
    try:
        if attrs.keys() != op.attrs.keys():
            refuse_attributes(op, attrs)
        said = op.shape(*arrays, **attrs)
    except TypeError as error:
        raise dispatcher.explain_misgiven(op, attrs, error) from error.__cause__
    return said if type(said) is tuple else (said,)


def refuse_attributes(op: Op, attrs: dict[str, Any]) -> None:
    """Raise TypeError for attributes that the op does not have, or has and that are missing."""
    bare_signature(op).bind(*op.inputs, **attrs)


def _note(segment: Segment, op: Op, arrays: list[Any], attrs: dict[str, Any], specs: tuple[Any, ...], on: Any) -> tuple[LazyArray, ...]:
    """The results of an op's call, noted."""
    with segment.lock:
        call = Call(op, FORWARD, tuple([segment.operand(a) for a in arrays]), attributes(op, attrs), user_instruction())
        results = []
        for k, spec in enumerate(specs):
            if on.type == "cuda":
                refuse_no_kernel_type(op.name, spec.dtype)
            shape = tuple(map(index, spec.shape))  # numpy's arrays of one number among them
            results.append(segment.new(call, k, shape, spec.dtype, meta.result_strides(op, shape, arrays, attrs, k), on))
        call.results = tuple([r.storage.value for r in results])
        segment.add(call)
    return tuple(results)


_ODD = frozenset((str, list, dict, set))  # types of attributes that are mistakes but where an op has such ones


def _runs_at_once(op: Op, arrays: list[Any], on: Any, attrs: dict[str, Any]) -> bool:
    """Whether a call cannot wait: a write into its inputs, what the host computes for a GPU, a view of memory that is there, a word or a list where
    none belongs, whose refusal belongs to this line."""
    if any([type(v) in _ODD and not isinstance(v, type(op.attrs.get(n))) for n, v in attrs.items()]):
        return True
    if op.view:
        return type(arrays[0]) is not LazyArray
    return bool(op.mutates) or on.type == "meta" or (on.type != "cpu" and (op.host is not None or op.forward is None))


def _run_now(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Run an op on computed arrays."""
    for x in inputs:
        if isinstance(x, dispatcher._Tensor) and type(x._array) is LazyArray:
            x._set_array(x._array.settled())
    if op.mutates:
        for name, x in zip(op.inputs, inputs, strict=False):
            if name in op.mutates and x is not None:
                run_before_write(x._array)
    with at_once():
        return dispatcher.apply(op, *inputs, **attrs)


def _note_versions(segment: Segment, inputs: tuple[Any, ...], arrays: list[Any]) -> None:
    """Remember what was read of memory that there is, so that a write which nobody announced is found."""
    for x, a in zip(inputs, arrays, strict=False):
        if type(a) is not LazyArray and isinstance(x, dispatcher._Tensor):
            counter = x._version_counter
            if counter is not None and not is_shared(a):
                segment.versions[id(a)] = counter, counter.value


# -- gradients
def as_lazy(array: Any, segment: Segment) -> LazyArray:
    """An array as a lazy one, which names it."""
    if type(array) in (LazyArray, MetaArray) or not isinstance(array, np.ndarray | StridedArray):  # inside a transform: that sees to it
        return array
    leave_path()
    return segment.hold(segment.leaf(array))


def pull(node: Node, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients of a node's inputs, noted: each function of the op's gradient corner is a call."""
    leave_path()
    op: Op = node.op
    given = g if type(g) is tuple else (g,)
    first = next(x for x in given if x is not None)
    segment = here.segment
    if segment is None:
        segment = next((x.storage.segment for x in given if type(x) is LazyArray and x.storage.value is not None), None)
    on = device_of(first)
    corner = op.cpu_backward if on.type == "cpu" else op.backward
    if segment is None or node.meta is None or on.type == "meta":
        return _pull_now(node, g, needs)
    if corner is None or op.view:  # of a view's these are views, where the gradient's strides allow them
        assert op.rule is not None
        with no_grad():
            found = node._call(op.rule, wrap_gradient(g), needs, True)
        return tuple([getattr(x, "_array", x) for x in found])
    meta_of = node.meta
    kept: list[Any] = []
    if corner.joint:
        _, function, fetch, _ = corner.steps[0]
        arguments = [node._saved(kind, k, needs, False) for kind, k in fetch]
        if _is_wrapped(g, arguments):
            return _pull_now(node, g, needs)
        came = (True,) * len(needs)
        if any([x is None for x in given]):
            key = op, tuple([x is None for x in given]), needs
            if key not in _come:  # an op says by its results alone which gradients some outputs have no part in
                found = _pull_now(node, g, needs)
                _come[key] = tuple([x is not None for x in found])
                return found
            came = _come[key]
        kernels = _kernels(node, g, needs, None) if on.type == "cpu" else None
        metas = [meta_of[i] if n and c and _has_gradient(op, i) else None for i, (n, c) in enumerate(zip(needs, came, strict=True))]
        return _note_gradient(segment, op, None, function, g, arguments, metas, kernels)
    for (i, function, fetch, _), need in zip(corner.steps, needs, strict=False):
        if not need or function is None:
            kept.append(None)
            continue
        arguments = [node._saved(kind, k, needs, False) for kind, k in fetch]
        if _is_wrapped(g, arguments):
            return _pull_now(node, g, needs)
        kernels = _kernels(node, g, needs, i) if on.type == "cpu" else None
        kept.append(_note_gradient(segment, op, i, function, g, arguments, [meta_of[i]], kernels)[0])
    return tuple(kept)


# which gradients there are, by the op, the outputs that have none, and the inputs that want one
_come: dict[tuple[Op, tuple[bool, ...], tuple[bool, ...]], tuple[bool, ...]] = {}


def _has_gradient(op: Op, i: int) -> bool:
    """Whether an op's rule has a gradient of its input i."""
    rule = op.rule
    return rule is None or rule.joint or i >= len(rule.functions) or rule.functions[i] is not None


def _kernels(node: Node, g: Any, needs: tuple[bool, ...], part: int | None) -> list[Any]:
    """What a GPU would run for one gradient of a node on the CPU, or (part None) for all that are asked for: see `kernels` of Call."""
    corner = node.op.backward
    if corner is None:
        return []
    asked = needs if part is None else tuple([i == part for i in range(len(needs))])
    try:
        if corner.joint:
            arguments = [node._saved(kind, k, asked, False) for kind, k in corner.steps[0][2]]
            return [(0, (g, *arguments), tuple([i if n else -1 for i, n in enumerate(needs)]) if part is None else (part,))]
        found = []
        for (i, function, fetch, _), need in zip(corner.steps, asked, strict=False):
            if need and function is not None:
                picks = (0,) if part is not None else tuple([0 if k == i else -1 for k in range(len(needs))])
                found.append((i, (g, *[node._saved(kind, k, asked, False) for kind, k in fetch]), picks))
        return found
    except GradError:  # it names more than the CPU's own does, and that was overwritten: the call is one that nothing is known of
        return []


def _is_wrapped(g: Any, arguments: list[Any]) -> bool:
    """Whether some value stands inside a transform."""
    return WrappedArray in {type(x) for x in (*(g if type(g) is tuple else (g,)), *arguments)}


def _pull_now(node: Node, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients on computed arrays."""
    compute_now(*[x for x in node.inputs or () if isinstance(x, dispatcher._Tensor)])
    if node.outputs:
        node.outputs = tuple([None if held is None else (settle(held[0]), held[1]) for held in node.outputs])
    with at_once():
        return node.pull(settle(g), needs)


def _note_gradient(
    segment: Segment,
    op: Op,
    part: int | None,
    function: Callable[..., Any],
    g: Any,
    arguments: list[Any],
    metas: list[Any],
    kernels: list[Any] | None,
) -> tuple[Any, ...]:
    """The results of one function of a gradient corner, noted. `metas`: shape and type of the input that each belongs to; None where none is asked for."""
    first = next(x for x in (g if type(g) is tuple else (g,)) if x is not None)
    arrays = [a for a in (first, *arguments) if isinstance(a, np.ndarray | StridedArray)]
    layouts = tuple([(a.shape, a.predicted if type(a) is LazyArray else tuple(element_strides(a))) for a in arrays])
    rest = None if op.broadcasts else _told(arguments)
    with segment.lock:
        call = Call(op, BACKWARD, tuple([segment.operand(a) for a in (g, *arguments)]), {}, user_instruction(), function, part)
        if kernels is not None:
            call.kernels = tuple([(i, tuple([segment.operand(a) for a in args]), picks) for i, args, picks in kernels])
        results: list[Any] = []
        for k, m in enumerate(metas):
            if m is None:
                results.append(None)
                continue
            shape, dtype = (first.shape if op.broadcasts else m[0]), m[1]
            kind = None if op.broadcasts else (op, part, k, tuple(shape), dtype, device_of(first), layouts, rest)
            strides = (
                learnt_strides.get(kind) if kind is not None else elementwise_strides(tuple(shape), layouts) if len(shape) > 1 else None
            )
            made = segment.new(call, k, tuple(shape), dtype, strides, device_of(first))
            made.storage.guessed = kind if strides is None else None
            results.append(made)
        call.results = tuple([None if r is None else r.storage.value for r in results])
        segment.add(call)
    return tuple(results)


def _told(arguments: list[Any]) -> Any:
    """What arguments are beside arrays, in a key; something that is in no other one where arrays are among the parts of one."""
    others = {str(i): a for i, a in enumerate(arguments) if not isinstance(a, np.ndarray | StridedArray)}
    if any([isinstance(a, tuple) and any([isinstance(x, np.ndarray | StridedArray) for x in a]) for a in others.values()]):
        return object()
    return replay.attributes_part(others)


def laid(g: LazyArray, strides: tuple[int, ...] | None) -> LazyArray:
    """A gradient in memory of its own that lies so (None: in C order)."""
    leave_path()
    wanted = contiguous_strides(g.shape) if strides is None else strides
    if not g.pending:
        g = as_lazy(g.settled(), Segment())
    segment = g.storage.segment
    with segment.lock:
        value = segment.operand(g)
        if type(value) is not Value or value.strides != wanted:
            value = segment.copied(value, wanted)
        value.fixed = True
        return segment.hold(value)  # type: ignore[no-any-return]


# -- writes
def write(x: Any, value: Any) -> None:
    """A tensor gets the contents of another one of its shape, type and device. The caller has seen to the graph, and counts the write."""
    if here.segment is not None and here.cursor.follows and type(x._array) is not LazyArray and not may_adopt(x, here.segment):
        here.segment.settle()  # it ends what waits, in every run
    leave_path()
    show_computed(x)
    if type(x._array) is not LazyArray and (here.segment is None or not adopt(x, here.segment)):
        copy_into(x._array, value._array)
        return
    target, source = x._array, value._array
    storage, segment = target.storage, target.storage.segment
    with segment.lock:
        item = segment.operand(source)
        if storage.home is not None:
            segment.overwritten.append((len(segment.calls), storage, storage.value))
        if not target.whole:
            storage.value = segment.written(storage.value, item, (target.shape, target.dtype, target.strides, target.first))
        elif type(item) is Value and item.strides == storage.strides:
            storage.value = item
            item.fixed = item.fixed or storage.fixed
        else:
            storage.value = segment.copied(item, storage.strides)
