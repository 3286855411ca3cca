"""The engine: walks the graph backwards without recursion, on bare arrays or, for higher orders, on tensors.

All that it does, but for the cases that the functions below name (as backward_pass of HIPS autograd, autograd/core.py):

    pending = dict(zip(roots, grads))
    for node in collect_nodes(roots):  # newest first: all of a node's gradient has come when its turn is there
        gradients = node.pull(pending.pop(node))
        for edge, x in zip(node.edges, gradients):
            pending[edge] = add(pending[edge], x) if edge in pending else x
    return pending  # of the leaves
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd import walk
from tritensor.autograd.accumulate import (
    Slices,
    accumulate,
    add_arrays,
    call_hooks,
    call_posthooks,
    call_prehooks,
    copy,
)
from tritensor.autograd.accumulate import sum_to as sum_to
from tritensor.autograd.hooks import Hooks
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.node import Branch, Node, as_array
from tritensor.autograd.task import (
    GradientEdge,
    Task,
    count_hooked_uses,
    find_behind_flat,
    find_leading_nodes,
    list_start_gradients,
    start_gradient,
)
from tritensor.autograd.task import collect_nodes as collect_nodes
from tritensor.autograd.task import map_rows as map_rows
from tritensor.autograd.task import tensors_of as tensors_of
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.ground.strides import is_dense
from tritensor.ground.transforms import WrappedArray, running
from tritensor.ops.array import Array
from tritensor.ops.lazy_array import LazyArray
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import ops

_ELSEWHERE = frozenset((MetaArray, LazyArray))  # arrays that no walk on arrays computes with


def run(
    roots: Sequence[Any], grads: Sequence[Any], *, targets: Sequence[Any] | None, keep_graph: bool, tensors: bool, task: Task | None = None,
    settle: Callable[[Any, Any, bool], None] | None = None,
) -> dict[Any, tuple[Any, bool]]:  # fmt: skip
    """Push gradients from root edges down the graph.

    Args:
        roots: edges (a Node or a leaf tensor) to start from, `grads` their gradients: arrays, or tensors if `tensors`.
        targets: edges whose gradients are wanted; None: all leaves that are reached.
        keep_graph: keep what the nodes saved.
        tensors: run the rules on tensors, recording them (create_graph).
        task: told what is walked.
        settle: given a leaf that has hooks for then, its gradient and whether the memory is its own as soon as that is complete.

    Returns:
        For each target (or leaf): its gradient and whether its memory is its own, so that a caller may keep it.
    """
    add: Callable[[Any, Any], Any] = ops.add if tensors else add_arrays
    order = collect_nodes(roots)
    wanted = None if targets is None else set(targets)
    useful = None if wanted is None else find_leading_nodes(order, wanted)
    if task is not None:
        task.walk = order, useful, roots
    pending: dict[Any, Any] = {}
    result: dict[Any, tuple[Any, bool]] = {}
    for r, g in zip(roots, grads, strict=True):
        pending[r] = add(pending[r], g) if r in pending else g
        if not isinstance(r, Node):
            # Not its own: the gradient to start from is the caller's.
            result[r] = (pending.pop(r) if r not in result else add(result[r][0], pending.pop(r)), False)
    waiting = {} if settle is None else count_hooked_uses(order)
    if not (tensors or waiting or state.anomaly is not None or running.levels or not _ELSEWHERE.isdisjoint(map(type, grads))):
        walk.walk_arrays(order, pending, result, wanted, useful, keep_graph)
        _assemble_slices(pending, result, add)
        return result
    for n in order:
        g = pending.pop(n, None)
        if g is not None:
            if type(g) is Slices:
                g = g.whole(add)
            walk.pull_node(n, g, pending, result, wanted, useful, keep_graph, tensors)
        if waiting:
            for e in n.edges:
                if e in waiting:
                    waiting[e] -= 1
                    if not waiting[e]:  # the last use: its gradient is complete, however long the walk goes on
                        if e in pending:
                            _assemble_slices({e: pending.pop(e)}, result, add)
                        if e in result:
                            settle(e, *result.pop(e))  # type: ignore[misc]
    _assemble_slices(pending, result, add)
    return result


def _assemble_slices(pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], add: Callable[[Any, Any], Any]) -> None:
    """Leaves of which slices were taken: their gradients put together."""
    for e, g in pending.items():
        held = result.get(e)
        result[e] = ((g if held is None else g.plus(held[0], add)).whole(add), True)


def zeros_like(t: Any) -> Array:
    """Zeros of t's shape and dtype, C-ordered; on a GPU made there, without a copy from the host."""
    if t.is_cuda or t.is_meta:
        return ops.full(shape=t._array.shape, value=0, dtype=t._array.dtype, device=t.device)._array
    return np.zeros(t._array.shape, t._array.dtype)


def edge_of(t: Any) -> Any:
    """The edge that a tensor's gradient goes to: its node, itself for a leaf that requires grad, None otherwise."""
    if type(t) is GradientEdge:
        return t.place
    return (t._node if t._node is not None else t) if t._tracked else None


def is_followed(t: Any) -> bool:
    """True where a derivative follows a tensor: a graph records it, here or below a transform, or it carries a tangent."""
    if t._tracked:
        return state.enabled
    array = t._array
    return type(array) is WrappedArray and (array.tangent is not None or is_followed(array.value))


def backward(outputs: Sequence[Any], grads: Sequence[Any], *, keep_graph: bool, create_graph: bool, inputs: Sequence[Any] | None) -> None:
    """Add d(outputs)/d(leaf) to `.grad` of every leaf (or of `inputs`)."""
    if inputs is not None and not inputs:
        raise GradError("backward: inputs cannot be empty; name tensors to accumulate into, or leave it out for all leaves")
    seeds = [start_gradient(t, g, create_graph, "backward") for t, g in zip(outputs, grads, strict=True)]
    targets = None if inputs is None else [_require_edge(t, "backward") for t in inputs]
    settle = None
    if Hooks.post and inputs is None:  # an optimizer's step, say, which frees a gradient before the next one is made
        settle = lambda leaf, g, own: _store_gradients({leaf: (g, own)}, None, create_graph)  # noqa: E731
    with Task() as task:
        found = run(
            [edge_of(t) for t in outputs], seeds, targets=targets, keep_graph=keep_graph, tensors=create_graph, task=task, settle=settle
        )
        _store_gradients(found, None if inputs is None else {edge_of(t): t for t in inputs}, create_graph)


def _store_gradients(found: dict[Any, tuple[Any, bool]], holders: dict[Any, Any] | None, create_graph: bool) -> None:
    """Add the gradients that a walk found to `.grad` of leaves, and of other tensors that were asked for, with their hooks."""
    for edge, (g, own) in found.items():
        leaf = holders.get(edge, edge) if holders else edge
        if type(leaf) is GradientEdge:
            if isinstance(edge, Node):
                raise GradError("backward: inputs has a GradientEdge of what is no leaf, which holds no .grad; use autograd.grad")
            leaf = edge
        extra = leaf._extra
        hooks = None
        if isinstance(edge, Node):
            if extra is not None and extra.retains:
                continue  # it has kept its gradient already
        elif not leaf._tracked:
            continue  # it has stopped asking for one
        elif extra is not None and extra.hooks is not None:
            hooks = extra.hooks
            own, g = False, call_hooks(hooks, g, create_graph)  # a hook may have kept it
            if hooks.before:
                g = call_prehooks(hooks, g, create_graph)
                if g is None:
                    continue
        accumulate(leaf, g, own, create_graph)
        if extra is not None and extra.post_hooks is not None:
            with enable_grad() if create_graph else no_grad():
                for hook in tuple(extra.post_hooks.values()):
                    given = hook(leaf)
                    if given is not None and given is not leaf:
                        raise (GradError if hasattr(given, "_array") else TypeError)(
                            f"backward: a hook of register_post_accumulate_grad_hook returned a {type(given).__name__}; it returns None or the tensor "
                            "itself, and changes the gradient by writing to its .grad"
                        )
        if hooks is not None and hooks.after:
            call_posthooks(hooks, (), g, create_graph)


def _require_edge(t: Any, who: str) -> Any:
    edge = edge_of(t)
    if edge is None:
        raise GradError(
            f"{who}: an input of shape {tuple(t.shape)} does not require grad; call requires_grad_() on it before computing the output"
        )
    return edge


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of the sum of `outputs` with respect to `inputs`, returned and not accumulated.

    Args:
        outputs: a tensor or a sequence of them; those that are not scalars need `grad_outputs` of their shape.
        inputs: a tensor or a sequence of them, leaves or not.
        retain_graph: keep the graph for another pass; defaults to `create_graph`.
        create_graph: record the computation, so that the result can be differentiated again, to any order.
        only_inputs: accepted; nothing is ever accumulated elsewhere.
        is_grads_batched: grad_outputs are batches, along a first dimension, which go back through the graph at once, as func.vmap takes them. What cannot
            be mapped, such as a Function whose backward leaves for numpy, goes row by row, and a warning says so once.
        allow_unused: give None (or zeros with `materialize_grads`, which require grad with create_graph) for an input that does not take part.

    Raises GradError where an input takes no part and `allow_unused` is not set, and for a graph that was freed.

    >>> x = tt.tensor(2.0, requires_grad=True)
    >>> (first,) = tt.autograd.grad(x**3, x, create_graph=True)  # 3 x^2
    >>> tt.autograd.grad(first, x)  # 6 x
    (tensor(12.),)
    """
    outs, ins = tensors_of("grad", "outputs", outputs), tensors_of("grad", "inputs", inputs)
    gos = list_start_gradients("grad", "outputs", outs, "grad_outputs", grad_outputs)
    if not ins:
        raise GradError("grad: inputs cannot be empty; name at least one tensor (is it a generator that was used up?)")
    if materialize_grads and allow_unused is False:
        raise ArgumentError("grad: allow_unused is False, and materialize_grads gives zeros for what is unused; leave one of the two out")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _grad_batched(outs, ins, gos, keep, create_graph, allow_unused, materialize_grads)
    return _grad(outs, ins, gos, keep, create_graph, allow_unused, materialize_grads)


def _grad_batched(
    outs: list[Any], ins: list[Any], gos: list[Any], keep: bool, create_graph: bool, allow_unused: bool | None, materialize_grads: bool
) -> tuple[Any, ...]:
    """Gradients for each of a batch of grad_outputs, which have one more dimension, the first; the results have it too, but for zeros of what is unused."""
    # Kept: rows that cannot be mapped go through the graph again and again.
    found = map_rows(gos, lambda at: _grad(outs, ins, at, True, create_graph, allow_unused or materialize_grads, False))
    if not keep:
        useful = find_leading_nodes(order := collect_nodes([edge_of(t) for t in outs]), {_require_edge(t, "grad") for t in ins})
        for n in order:
            if type(n) is not Branch and n in useful and any(e is not None and e in useful for e in n.edges):
                n.free()
    return tuple([_make_unused_zeros(t, create_graph) if g is None and materialize_grads else g for t, g in zip(ins, found, strict=True)])


def _make_unused_zeros(t: Any, create_graph: bool) -> Any:
    """Zeros for an input that takes no part."""
    made = nodes.make_tensor(zeros_like(_require_edge(t, "grad") if type(t) is GradientEdge else t))
    return made.requires_grad_() if create_graph else made


def _grad(
    outs: list[Any], ins: list[Any], gos: list[Any], keep: bool, create_graph: bool, allow_unused: bool | None, materialize_grads: bool
) -> tuple[Any, ...]:
    """The gradients that `grad` returns."""
    seeds = [start_gradient(t, g, create_graph, "grad") for t, g in zip(outs, gos, strict=True)]
    targets = [_require_edge(t, "grad") for t in ins]
    with Task() as task:
        found = run([edge_of(t) for t in outs], seeds, targets=targets, keep_graph=keep, tensors=create_graph, task=task)
        for edge, (g, _) in found.items():  # once for each, however often it is listed
            if not isinstance(edge, Node) and edge._extra is not None and edge._extra.hooks is not None:
                found[edge] = (call_hooks(edge._extra.hooks, g, create_graph), False)
    result = []
    behind: set[Any] = set() if all([e in found for e in targets]) else find_behind_flat([edge_of(t) for t in outs])
    for i, (t, edge) in enumerate(zip(ins, targets, strict=True)):
        if edge in found:
            g, own = found[edge]
            # Results share no memory: the caller may write to one.
            if not create_graph:
                g = as_array(g)
                g = nodes.make_tensor(g if own and not (type(g) is LazyArray and not is_dense(g.shape, g.strides)) else copy(g))
            result.append(g)
            found[edge] = (g, False)  # listed again, it gets memory of its own
        elif materialize_grads or edge in behind:
            result.append(_make_unused_zeros(t, create_graph))
        elif allow_unused:
            result.append(None)
        else:
            raise GradError(
                f"grad: input {i} of shape {tuple(t.shape)} takes no part in the outputs; pass allow_unused=True to get None for it"
            )
    return tuple(result)
