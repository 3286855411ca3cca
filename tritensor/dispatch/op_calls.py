"""Calls of ops: what `ops.<name>` gives, a door to the plans of an op, behind which `apply` runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.dispatch.dispatcher import apply
from tritensor.dispatch.plans.door_code import Parameters, open_door
from tritensor.dispatch.plans.doors import Door
from tritensor.ground.call_site import wrapper
from tritensor.ground.transforms import running, transform
from tritensor.ops.table import Op, Ops
from tritensor.ops.table.description import describe


def bind(op: Op) -> Callable[..., Any]:
    """The callable that `ops.<name>` gives, under the op's name, with what `help` says of it."""
    draws = not op.inputs and "seed" in op.attrs

    @wrapper
    def call(*inputs: Any, **attrs: Any) -> Any:
        if draws and running.levels:
            return transform.current.draw(op, attrs)
        return apply(op, *inputs, **attrs)

    if op.mutates or "seed" in op.attrs:
        return describe(call, op)
    by_place = op.inputs[:-1] if op.variadic else op.inputs
    parameters = Parameters(by_place, op.inputs[-1] if op.variadic else None, tuple(op.attrs))
    return describe(open_door(Door(call, parameters, op.name, op.inputs if op.broadcasts else (), checks=False)), op)


Ops.bind = staticmethod(bind)  # type: ignore[assignment]
