"""Calls of ops: what `ops.<name>` gives, a door to the plans of an op, behind which `apply` runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.dispatch.dispatcher import apply
from tritensor.dispatch.plans.door_code import Parameters, open_door
from tritensor.dispatch.plans.doors import Door
from tritensor.ground.call_site import wrapper
from tritensor.ground.transforms import running, transform
from tritensor.ops.table import Op, Ops, ops, registry
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


def run_planned(op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """What `apply` gives, by the op's door where it has one: for callers that hold a record, and come with the same layouts again and again."""
    if dict.get(registry, op.name) is not op:  # another has its place by now
        return apply(op, *inputs, **attrs)
    return getattr(ops, op.name)(*inputs, **attrs)


Ops.bind = staticmethod(bind)  # type: ignore[assignment]
