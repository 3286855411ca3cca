"""Ops on device meta: the result is what the op's shape rule and its layout rule say, the node in the graph as everywhere, and nothing is computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.dispatch import dispatcher
from tritensor.dispatch.nodes import record_node, refuse_written, share, written
from tritensor.ground import dtypes
from tritensor.ground.errors import MetaError
from tritensor.ground.providers import provider
from tritensor.ground.strides import BACKWARDS, ELEMENTWISE, IMAGES, OWN, Steps, elementwise_strides, image_strides
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray, transform
from tritensor.ops.array import element_strides
from tritensor.ops.lazy_array import LazyArray
from tritensor.ops.strided_array import MetaArray, StridedArray, empty_meta
from tritensor.ops.table import Op


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Run an op, checked by its shape rule as anywhere. Raises MetaError, by the op's name, where the result hangs on values, DeviceError for mixed devices."""
    Tensor = dispatcher._Tensor
    arrays: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor):
            a = x._array
            if type(a) is WrappedArray:  # behind a plain one: the call is the transform's all the same
                return transform.current.run(op, inputs, attrs)
            if type(a) is not MetaArray:
                if a.shape or not op.broadcasts:  # a number that stands in a tensor on the CPU goes with every device, as in PyTorch
                    raise dispatcher.mixed_devices(op, inputs)
                a = empty_meta((), a.dtype)
            arrays.append(a)
        elif isinstance(x, np.generic) and op.broadcasts:
            return dispatcher.apply(op, *[y.item() if isinstance(y, np.generic) else y for y in inputs], **attrs)
        elif (x is None and len(arrays) >= op.required) or (op.broadcasts and isinstance(x, dispatcher.SCALARS)):
            arrays.append(x)
        else:
            raise dispatcher.foreign(op, inputs, x)
    if op.mutates:
        refuse_written(op, inputs)
    try:
        said = op.shape(*arrays, **attrs)
    except MetaError as error:
        raise needs_values(op.name) from error
    except TypeError as error:
        raise dispatcher.explain_misgiven(op, attrs, error) from error.__cause__
    if op.mutates:
        written(op, inputs)
        if here.noting is not None:
            here.noting.spoil(f"{op.name} writes")
        return None
    if op.view:
        results: tuple[Any, ...] = (op.cpu(*arrays, **attrs),)
    else:
        specs = said if type(said) is tuple else (said,)
        results = tuple([empty_meta(tuple(s.shape), s.dtype, result_strides(op, s.shape, arrays, attrs, k)) for k, s in enumerate(specs)])
    outs = tuple([dispatcher._new(r) for r in results[: op.public]])
    tracked = state.enabled and op.rule is not None and any([isinstance(x, Tensor) and x._tracked for x in inputs])
    if tracked and any([dtypes.has_gradient(y._array.dtype) for y in outs]):
        node = record_node(op, inputs, attrs, outs, results)
        node.meta = tuple([(x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in inputs])  # what `gradients` gives
    if op.view:
        share(outs[0], inputs[0], op, attrs)
    made = outs if op.public > 1 else outs[0]
    if here.noting is not None:
        here.noting.note(op, inputs, attrs, made, arrays, results, results, None)
    return made


def result_strides(op: Op, shape: Steps, arrays: list[Any], attrs: dict[str, Any], place: int = 0) -> Steps | None:
    """The strides, in elements, of the result at a place as the op's layout rule says; None is C order."""
    if len(shape) < 2 or op.layout not in (ELEMENTWISE, BACKWARDS, IMAGES, OWN):
        return None
    arrays = [_without_memory(a) for a in arrays]
    if op.layout == OWN:
        return None if place else provider("kernels.own_layouts").strides_of(op.name, shape, arrays, attrs)  # it speaks of the first result
    layouts = tuple([(a.shape, a.strides) for a in arrays if isinstance(a, StridedArray)])
    if op.layout == IMAGES:
        return image_strides(shape, layouts)
    return elementwise_strides(shape, layouts[::-1] if op.layout == BACKWARDS else layouts)


def _without_memory(a: Any) -> Any:
    """An array of any kind as one that lies so, or will."""
    if isinstance(a, np.ndarray):
        return empty_meta(a.shape, a.dtype, element_strides(a))
    return empty_meta(a.shape, a.dtype, a.predicted) if type(a) is LazyArray else a


def gradients(op: Op, meta: tuple[Any, ...], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients of a node's inputs: each has its input's shape and type, and one that the rule has no function for has none."""
    rule = op.rule
    assert rule is not None
    given = [rule.joint or i >= len(rule.functions) or rule.functions[i] is not None for i in range(len(meta))]
    return tuple([empty_meta(*m) if g and need and m is not None else None for m, need, g in zip(meta, needs, given, strict=False)])


def needs_values(name: str) -> MetaError:
    """The error of an op or function of which the result hangs on numbers that a tensor on device meta does not have."""
    return MetaError(
        f"{name}: the result hangs on the values of a tensor, and one on device meta has none; call it where there is memory, or decide by shapes alone"
    )
