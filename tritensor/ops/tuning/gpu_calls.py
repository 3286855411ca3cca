"""Forward and backward of an op called by themselves on arrays of a GPU, for tuning: no dispatch, no graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import GradError
from tritensor.ops.array import CudaArray, empty, from_host
from tritensor.ops.table import Op, Sample, Spec
from tritensor.ops.table.corner_calls import call

Run = Callable[[], Any]


def typed(op: Op, inputs: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """A sample's inputs with float64 arrays in the type under test, all promoted as dispatch does; arrays and Specs become Specs."""
    wanted = dtypes.as_dtype(dtype).numpy
    given = [np.asarray(x) if isinstance(x, np.generic) else x for x in inputs]
    specs = [Spec(tuple(x.shape), wanted if x.dtype == np.float64 else x.dtype) if hasattr(x, "shape") else x for x in given]
    # what dispatch would not promote either
    if op.promote is None or not any(isinstance(x, Spec) for x in specs):
        return tuple(specs)
    common = dtypes.result_type(specs)
    if op.promote == "float" and dtypes.of(common).kind not in ("float", "complex"):
        common = dtypes.default_float().numpy
    return tuple(Spec(x.shape, common) if isinstance(x, Spec) else x for x in specs)


def blank(specs: tuple[Any, ...], on: device) -> tuple[Any, ...]:
    """Arrays of Specs, without values."""
    return tuple(empty(x.shape, x.dtype, on) if isinstance(x, Spec) else x for x in specs)


def filled(inputs: tuple[Any, ...], specs: tuple[Any, ...], on: device) -> tuple[Any, ...]:
    """Arrays of Specs with the values of the sample's inputs."""
    return tuple(
        from_host(np.ascontiguousarray(np.broadcast_to(x, s.shape)).astype(s.dtype), on) if isinstance(s, Spec) else s
        for x, s in zip(inputs, specs, strict=True)
    )


def attributes(op: Op, sample: Sample, on: device) -> dict[str, Any]:
    """A sample's attributes, for a call on a device."""
    return {**sample.attrs, **({"device": on} if "device" in op.attrs else {})}


def corners(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Iterator[tuple[str, Run]]:
    """("forward", call), ("backward", call): each may be called again and again, on the same arrays. Forward runs once for backward's sake."""
    forward = op.forward
    if forward is None:
        return
    yield "forward", lambda: forward(*inputs, **attrs)
    needs = tuple(isinstance(x, CudaArray) and dtypes.is_float(x.dtype) for x in inputs)
    corner = op.backward
    if corner is None or not any(needs):
        return
    # backward may read results, so they have to be there, if without values
    out = forward(*inputs, **attrs)
    outputs = out if isinstance(out, tuple) else (out,)
    grads = tuple(_like(y) for y in outputs[: op.public])
    g = grads[0] if op.public == 1 else grads

    def backward(wanted: tuple[bool, ...] = needs) -> Any:
        try:
            return call(op, corner, g, inputs, outputs, attrs, wanted)
        except GradError:  # an input that refuses a gradient (class weights): the first one's alone
            if not any(wanted[1:]):
                raise
            return backward((wanted[0], *(False for _ in wanted[1:])))

    yield "backward", backward


def _like(y: Any) -> Any:
    return empty(y.shape, y.dtype, y.device)
