"""Walk of backward: a node's complete gradient taken, and the gradients of its inputs handed on, on bare arrays or on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.accumulate import (
    TAKEN,
    Slices,
    add_arrays,
    add_numbers,
    add_slice,
    call_hooks,
    call_posthooks,
    call_prehooks,
    make_shape_error,
    sum_to,
)
from tritensor.autograd.modes import state
from tritensor.autograd.node import FREED, Branch, Node, Severed, latest
from tritensor.autograd.task import FLAT, note_flat_inputs, pull_with_anomaly_check
from tritensor.ground.errors import ShapeError
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.transforms import running
from tritensor.ops.array import CudaArray
from tritensor.ops.table import ops, registry


def walk_arrays(
    order: list[Node], pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], wanted: set[Any] | None, useful: set[Any] | None, keep_graph: bool,
) -> None:  # fmt: skip
    """The walk on arrays: like `pull_node` for every node, with all but hooks, Functions and rules written out, as a call costs as much as a few numbers.

    `pending` holds the gradients that have come, by edge; `wanted` are the edges that are asked for, `useful` those that lead there (None: all).
    """
    for n in order:
        g = pending.pop(n, None)
        if g is None or (useful is not None and n not in useful):
            continue
        if type(g) is Slices:
            g = g.whole(add_arrays)
        if type(n) is not Node or n.hooks is not None:
            pull_node(n, g, pending, result, wanted, useful, keep_graph, False)
            continue
        edges = n.edges
        if wanted is not None and n in wanted:  # a tensor that is no leaf was asked for: the walk goes on behind it
            result[n] = (g, False)
        if n.op.name == TAKEN:
            if edges[0] is not None and (useful is None or edges[0] in useful):
                add_slice(pending, edges[0], n.meta[0][0], n.attrs["index"], g, add_arrays)  # type: ignore[index]
            continue
        kind = type(g)
        if kind is list:  # the gradients of several outputs, those that came
            g = tuple(g)
            kind = CudaArray if CudaArray in map(type, g) else np.ndarray
        corner = n.op.backward if kind is CudaArray else n.op.cpu_backward
        if corner is None or corner.joint:
            needs = _needs(edges, useful)
            if True not in needs:
                continue
            found = n.pull(g, needs) if corner is None else _pull_jointly(n, corner.steps[0], g, needs)
            _add_to_edges(n, g, found, needs, pending, result, add_arrays)
        elif useful is None or True in _needs(edges, useful):
            _pull_each(n, corner.steps, g, pending, result, useful)
        else:
            continue
        if not keep_graph and (n.inputs is not None or n.outputs is not None):
            n.inputs = n.outputs = FREED


def _pull_jointly(n: Node, step: Any, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients of all inputs by one function."""
    _, function, fetch, _ = step
    given = n.saved_values(fetch, needs)
    try:
        found = function(g, *given)
    except RuntimeWarning:
        found = quietly(function, g, *given)
    return found if type(found) is tuple else (found,)


def _is_among(x: Any, gs: tuple[Any, ...]) -> bool:
    """Whether a gradient is one of those that came, or lies in its memory."""
    return any([x is g or (type(g) is CudaArray and x.storage is g.storage) for g in gs])


def _pull_each(n: Node, steps: Any, g: Any, pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], useful: set[Any] | None) -> None:
    """The gradient of each input by a function of its own, handed on."""
    on_device = type(g) is CudaArray
    several = type(g) is tuple  # the gradients of several outputs
    add: Any = registry["add"].forward if on_device or (several and CudaArray in map(type, g)) else add_numbers
    meta = n.meta
    # Nothing anywhere was written since: no saved value needs a look of its own.
    intact = n.sequence > latest.stamp and n.inputs is not FREED
    previous = None
    for e, (i, function, fetch, place) in zip(n.edges, steps):  # noqa: B905 (strict costs time here)
        if e is None or function is None or (useful is not None and e not in useful):
            continue
        try:
            if place == -1:
                x = function(g)
            elif place >= 0 and intact:
                v = n.inputs[place]  # type: ignore[index]
                x = function(g, getattr(v, "_array", v))
            else:
                x = function(g, *n.saved_values(fetch, ()))
        except RuntimeWarning:
            x = quietly(function, g, *n.saved_values(fetch, ()))
        if x is None:
            continue
        if meta is not None and x.shape != meta[i][0]:
            x = _undo_broadcast(n, i, x)
        if isinstance(e, Node):
            at = pending.get(e)
            pending[e] = x if at is None else add(at, x) if type(at) is not Slices else at.plus(x, add)
        elif (held := result.get(e)) is None:
            # What is handed on unchanged, or to two inputs, nobody may add to.
            handed = x is g or x is previous or (on_device and x.storage is g.storage) or (several and _is_among(x, g))
            result[e] = (x, not handed)
        elif x.shape == held[0].shape:
            result[e] = (add(held[0], x), True)
        else:
            raise make_shape_error(e, x)
        previous = x


def pull_node(
    n: Node, g: Any, pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], targets: Any, useful: Any, keep_graph: bool, tensors: bool,
) -> None:  # fmt: skip
    """Take one node's complete gradient and hand the gradients of its inputs on."""
    add: Callable[[Any, Any], Any] = ops.add if tensors else add_arrays
    if type(g) is list:  # the gradients of several outputs, those that came
        g = tuple(g)
    hooks = n.hooks
    if hooks is not None:
        g = call_hooks(hooks, g, tensors)
    # A tensor that is no leaf was asked for: the walk goes on behind it.
    if useful is not None and n in useful and n in targets and type(n) is not Severed:
        result[n] = (g, False)
    edges = n.edges
    if type(n) is Branch:
        if useful is None or edges[0] in useful:
            _add_to_branch(n, g, pending, add)
        return
    needs = _needs(edges, useful)
    if True not in needs:
        return
    if hooks is not None and hooks.before:
        g = call_prehooks(hooks, g, tensors)
        if g is None:
            return
    if n.op.name == TAKEN and hooks is None and state.anomaly is None and not running.levels:
        add_slice(pending, edges[0], n.meta[0][0], (n.attrs or n.op.attrs)["index"], g, add)  # type: ignore[index]
        return
    if state.anomaly is None:
        found = n.pull_tensors(g, needs) if tensors else n.pull(g, needs)
    else:
        found = pull_with_anomaly_check(n, g, needs, tensors)
    if tensors and n.op.name in FLAT:
        note_flat_inputs(n, found)
    if hooks is not None and hooks.after:
        found = tuple([x if x is None or n.meta is None else _undo_broadcast(n, i, x) for i, x in enumerate(found)])
        found = call_posthooks(hooks, found, g, tensors)
    _add_to_edges(n, g, found, needs, pending, result, add)
    if not keep_graph:  # not before: a gradient that does not fit leaves the graph as it was
        n.free()


def _needs(edges: tuple[Any, ...], useful: set[Any] | None) -> tuple[bool, ...]:
    """Which inputs want a gradient."""
    return tuple([e is not None for e in edges] if useful is None else [e is not None and e in useful for e in edges])


def _undo_broadcast(n: Node, i: int, x: Any) -> Any:
    """The gradient summed to the shape that input i of a broadcasting op has."""
    shape = n.meta[i][0]  # type: ignore[index]
    if x.shape == shape:
        return x
    if not n.op.broadcasts:  # a rule's mistake, which sum_to would hide
        raise ShapeError(f"backward: {n.op.name} returned a gradient of shape {x.shape} for {_input_name(n, i)} of shape {shape}")
    return sum_to(x, shape)


def _add_to_edges(
    n: Node, g: Any, found: tuple[Any, ...], needs: tuple[bool, ...], pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], add: Any
) -> None:
    """Hand the gradients of a node's inputs to its edges, undoing broadcasting on the way."""
    meta = n.meta
    previous = None
    for i, e in enumerate(n.edges):
        if not needs[i]:
            continue
        x = found[i]
        if x is None:
            continue
        if meta is not None:
            x = _undo_broadcast(n, i, x)
        if isinstance(e, Node):
            at = pending.get(e)
            pending[e] = x if at is None else add(at, x) if type(at) is not Slices else at.plus(x, add)
        else:
            at = result.get(e)
            if at is None:
                # A table op returns fresh memory or (a view of) g; a user's Function may return anything, a saved tensor too.
                own = (
                    type(n) is Node
                    and n.hooks is None
                    and x is not g
                    and x is not previous
                    and getattr(x, "storage", 0) is not getattr(g, "storage", 1)
                )
                result[e] = (x, own)
            elif x.shape == at[0].shape:
                result[e] = (add(at[0], x), True)
            else:
                raise make_shape_error(e, x)
        previous = x


def _input_name(n: Node, i: int) -> str:
    names = n.op.inputs
    return names[i] if i < len(names) else f"{names[-1]}[{i - len(names) + 1}]"


def _add_to_branch(b: Branch, g: Any, pending: dict[Any, Any], add: Callable[[Any, Any], Any]) -> None:
    """Add an output's gradient to the list of its node's."""
    n = b.edges[0]
    slots = pending.get(n)
    if slots is None:
        slots = pending[n] = [None] * n.op.public  # a list marks gradients that are still to come; complete ones are a tuple
    slots[b.index] = g if slots[b.index] is None else add(slots[b.index], g)
