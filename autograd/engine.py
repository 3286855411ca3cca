"""The engine: walks the graph backwards without recursion, on bare arrays or, for higher orders, on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from tritensor.array import Array, CudaArray
from tritensor.autograd import node as nodes
from tritensor.autograd.accumulate import accumulate, add_arrays, call_after, call_before, call_hooks, copy, reshaped
from tritensor.autograd.node import FREED, Branch, Node, Version, as_array
from tritensor.errors import GradError, ShapeError
from tritensor.table import ops, registry

_by_sequence = attrgetter("sequence")


def _collect(roots: Sequence[Any]) -> list[Node]:
    """Every node that the roots lead to, newest first: the order in which gradients are complete."""
    seen: set[Any] = set()
    found: list[Node] = []
    stack = [r for r in roots if isinstance(r, Node)]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        found.append(n)
        for e in n.edges:
            if isinstance(e, Node):
                stack.append(e)
    found.sort(key=_by_sequence, reverse=True)
    return found


def _leading(order: list[Node], targets: set[Any]) -> set[Any]:
    """The nodes and leaves on a path to a target, targets included (ids of edges)."""
    useful = set(targets)
    for n in reversed(order):
        if n not in useful and any(e is not None and e in useful for e in n.edges):
            useful.add(n)
    return useful


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: sum a gradient (array or Tensor) over the axes along which `shape` was stretched."""
    lead = len(g.shape) - len(shape)
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1))
    if isinstance(g, CudaArray):
        g = registry["sum"].forward(g, dim=axes, keepdim=True) if axes else g  # type: ignore[misc]
        return g.reshape(shape)
    if isinstance(g, np.ndarray | np.generic):
        return (registry["sum"].reference(g, dim=axes, keepdim=True) if axes else g).reshape(shape)
    g = ops.sum(g, dim=axes, keepdim=True) if axes else g
    return ops.reshape(g, shape=shape) if lead else g


def _add_tensors(a: Any, b: Any) -> Any:
    return ops.add(a, b)


def run(
    roots: Sequence[Any], grads: Sequence[Any], *, targets: Sequence[Any] | None, keep_graph: bool, tensors: bool
) -> dict[Any, tuple[Any, bool]]:
    """Push gradients from root edges down the graph.

    Args:
        roots: edges (a Node or a leaf tensor) to start from, `grads` their gradients: arrays, or tensors if `tensors`.
        targets: edges whose gradients are wanted; None: all leaves that are reached.
        keep_graph: keep what the nodes saved.
        tensors: run the rules on tensors, recording them (create_graph).

    Returns:
        For each target (or leaf): its gradient and whether its memory is its own, so that a caller may keep it.
    """
    add = _add_tensors if tensors else add_arrays
    order = _collect(roots)
    wanted = None if targets is None else set(targets)
    useful = None if wanted is None else _leading(order, wanted)
    pending: dict[Any, Any] = {}
    result: dict[Any, tuple[Any, bool]] = {}
    for r, g in zip(roots, grads, strict=True):
        pending[r] = add(pending[r], g) if r in pending else g
        if not isinstance(r, Node):
            result[r] = (pending.pop(r) if r not in result else add(result[r][0], pending.pop(r)), False)
    if targets is None and not tensors:
        _walk_plain(order, pending, result, keep_graph)
        return result
    for n in order:
        g = pending.pop(n, None)
        if g is not None:
            _step(n, g, pending, result, wanted, useful, keep_graph, tensors)
    return result


def _walk_plain(order: list[Node], pending: dict[Any, Any], result: dict[Any, tuple[Any, bool]], keep_graph: bool) -> None:
    """The walk of `backward()`: like `_step` for every node, with the commonest case unrolled.

    That case is an op with one numpy function, or one kernel, per input, all gradients wanted.
    """
    add_kernel = registry["add"].forward
    for n in order:
        g = pending.pop(n, None)
        if g is None:
            continue
        on_device = type(g) is CudaArray
        if (
            type(n) is not Node
            or n.hooks is not None
            or type(g) is list
            or (corner := n.op.backward if on_device else n.op.reference_backward) is None
            or corner.joint
        ):
            _step(n, g, pending, result, None, None, keep_graph, False)
            continue
        add: Any = add_kernel if on_device else np.add
        inputs, meta = n.inputs, n.meta
        intact = n.sequence > Version.last and inputs is not FREED
        previous = None
        for e, (i, function, fetch, place) in zip(n.edges, corner.steps):  # noqa: B905 (strict costs time here)
            if e is None or function is None:
                continue
            if place == -1:
                x = function(g)
            elif place >= 0 and intact:
                v = inputs[place]  # type: ignore[index]
                x = function(g, getattr(v, "array", v))
            else:
                x = function(g, *[n._saved(kind, k, (), False) for kind, k in fetch])
            if x is None:
                continue
            if meta is not None:
                x = _undo_broadcast(n, i, x)
            if isinstance(e, Node):
                at = pending.get(e)
                pending[e] = x if at is None else add(at, x)
            elif (held := result.get(e)) is None:
                own = x is not g and x is not previous and not (on_device and x.storage is g.storage)
                result[e] = (x, own)
            elif x.shape == held[0].shape:
                result[e] = (add(held[0], x), True)
            else:
                raise reshaped(e, x)
            previous = x
        if not keep_graph:
            n.free()


def _step(
    n: Node,
    g: Any,
    pending: dict[Any, Any],
    result: dict[Any, tuple[Any, bool]],
    targets: Any,
    useful: Any,
    keep_graph: bool,
    tensors: bool,
) -> None:
    """Take one node's complete gradient and hand the gradients of its inputs on."""
    add = _add_tensors if tensors else add_arrays
    if type(g) is list:  # the gradients of several outputs, those that came
        g = tuple(g)
    hooks = n.hooks
    if hooks is not None:
        g = call_hooks(hooks, g, tensors)
    if useful is not None and n in useful and n in targets:
        result[n] = (g, False)
    edges = n.edges
    if type(n) is Branch:
        if useful is None or edges[0] in useful:
            _deliver_branch(n, g, pending, add)
        return
    needs = tuple([e is not None for e in edges] if useful is None else [e is not None and e in useful for e in edges])
    if True not in needs:
        return
    if hooks is not None and hooks.before:
        g = call_before(hooks, g, tensors)
    found = n.pull_tensors(g, needs) if tensors else n.pull(g, needs)
    if not keep_graph:
        n.free()
    if hooks is not None and hooks.after:
        found = tuple([x if x is None or n.meta is None else _undo_broadcast(n, i, x) for i, x in enumerate(found)])
        found = call_after(hooks, found, g, tensors)
    _deliver(n, g, found, needs, pending, result, add)


def _undo_broadcast(n: Node, i: int, x: Any) -> Any:
    """The gradient summed to the shape that input i of a broadcasting op has."""
    shape = n.meta[i][0]  # type: ignore[index]
    if x.shape == shape:
        return x
    if not n.op.broadcasts:
        raise ShapeError(f"backward: {n.op.name} returned a gradient of shape {x.shape} for {_input_name(n, i)} of shape {shape}")
    return sum_to(x, shape)


def _deliver(
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
            pending[e] = x if at is None else add(at, x)
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
                raise reshaped(e, x)
        previous = x


def _input_name(n: Node, i: int) -> str:
    names = n.op.inputs
    return names[i] if i < len(names) else f"{names[-1]}[{i - len(names) + 1}]"


def _deliver_branch(b: Branch, g: Any, pending: dict[Any, Any], add: Callable[[Any, Any], Any]) -> None:
    """Add an output's gradient to the list of its node's."""
    n = b.edges[0]
    slots = pending.get(n)
    if slots is None:
        slots = pending[n] = [None] * n.op.public
    slots[b.index] = g if slots[b.index] is None else add(slots[b.index], g)


def zeros_like(t: Any) -> Array:
    """Zeros of t's shape and dtype, C-ordered; on a GPU made there, without a copy from the host."""
    if type(t.array) is CudaArray:
        return ops.full(shape=t.array.shape, value=0, dtype=t.array.dtype, device=t.device).array
    return np.zeros(t.array.shape, t.array.dtype)


def _seed(output: Any, grad: Any, create_graph: bool, who: str) -> Any:
    """The gradient to start from: the one given, checked, or ones for a scalar."""
    if not output.tracked:
        raise GradError(
            f"{who}: the tensor of shape {tuple(output.shape)} has no graph behind it; set requires_grad=True on an input, "
            "and compute it outside no_grad and without detach() or .data"
        )
    if grad is None:
        if output.array.size != 1:
            raise GradError(
                f"{who}: the tensor of shape {tuple(output.shape)} is not a scalar, so the gradient to start from is ambiguous; "
                f"reduce it (.sum(), .mean()) or pass gradient= of that shape"
            )
        like = output.array
        if like.dtype.kind == "c":
            raise GradError(
                f"{who}: the tensor is {output.dtype.name}, and the gradient to start from is only implied for a real number; take .real, "
                ".imag or .abs() of it, or pass gradient="
            )
        if type(like) is CudaArray:
            array: Array = registry["full"].forward(shape=like.shape, value=1.0, dtype=like.dtype, device=output.device)  # type: ignore[misc]
        else:
            array = np.ones(like.shape, like.dtype)
        return nodes.make_tensor(array) if create_graph else array
    if tuple(grad.shape) != tuple(output.shape):
        raise ShapeError(f"{who}: gradient {tuple(grad.shape)} for a tensor of shape {tuple(output.shape)}; both must be the same")
    if grad.device != output.device:
        raise GradError(f"{who}: gradient on {grad.device} for a tensor on {output.device}; move it with .to({str(output.device)!r})")
    if grad.array.dtype != output.array.dtype:
        grad = ops.cast(grad, dtype=output.array.dtype)
    return grad if create_graph else grad.array


def edge_of(t: Any) -> Any:
    """Where a tensor's gradient goes: its node, itself for a leaf that requires grad, None otherwise."""
    return (t.node if t.node is not None else t) if t.tracked else None


def backward(outputs: Sequence[Any], grads: Sequence[Any], *, keep_graph: bool, create_graph: bool, inputs: Sequence[Any] | None) -> None:
    """Add d(outputs)/d(leaf) to `.grad` of every leaf (or of `inputs`)."""
    seeds = [_seed(t, g, create_graph, "backward") for t, g in zip(outputs, grads, strict=True)]
    targets = None if inputs is None else [_target(t, "backward") for t in inputs]
    found = run([edge_of(t) for t in outputs], seeds, targets=targets, keep_graph=keep_graph, tensors=create_graph)
    holders = {edge_of(t): t for t in inputs} if inputs is not None else {}
    for edge, (g, own) in found.items():
        leaf = holders.get(edge, edge) if holders else edge
        extra = leaf.extra
        if isinstance(edge, Node):
            if extra is not None and extra.retains:
                continue  # it has kept its gradient already
        elif not leaf.tracked:
            continue  # it has stopped asking for one
        elif extra is not None and extra.hooks is not None:
            own, g = False, call_hooks(extra.hooks, g, create_graph)  # a hook may have kept it
        accumulate(leaf, g, own, create_graph)
        if extra is not None and extra.post_hooks is not None:
            for hook in tuple(extra.post_hooks.values()):
                hook(leaf)


def _target(t: Any, who: str) -> Any:
    edge = edge_of(t)
    if edge is None:
        raise GradError(
            f"{who}: an input of shape {tuple(t.shape)} does not require grad; call requires_grad_() on it before computing the output"
        )
    return edge


def tensors_of(who: str, what: str, given: Any, or_none: bool = False) -> list[Any]:
    """A tensor, or several, as a list. Raises TypeError, naming the argument, for anything else."""
    if hasattr(given, "tracked"):
        return [given]
    if given is None or isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{who}: {what} is {given!r}; give a tensor, or a list or tuple of them")
    found = list(given)
    for i, t in enumerate(found):
        if not hasattr(t, "tracked") and not (or_none and t is None):
            raise TypeError(f"{who}: {what}[{i}] is a {type(t).__name__}; give a tensor{' or None' if or_none else ''}")
    return found


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
        allow_unused: give None (or zeros with `materialize_grads`) for an input that does not take part.

    Raises:
        GradError: an input takes no part and `allow_unused` is not set; a graph that was freed.
    """
    if is_grads_batched:
        raise GradError("grad: is_grads_batched is not supported; call grad once per row, or use a loop over grad_outputs")
    outs, ins = tensors_of("grad", "outputs", outputs), tensors_of("grad", "inputs", inputs)
    gos = [None] * len(outs) if grad_outputs is None else tensors_of("grad", "grad_outputs", grad_outputs, or_none=True)
    if len(gos) != len(outs):
        raise GradError(f"grad: {len(outs)} outputs and {len(gos)} grad_outputs; give one (or None) for each")
    keep = create_graph if retain_graph is None else retain_graph
    seeds = [_seed(t, g, create_graph, "grad") for t, g in zip(outs, gos, strict=True)]
    targets = [_target(t, "grad") for t in ins]
    found = run([edge_of(t) for t in outs], seeds, targets=targets, keep_graph=keep, tensors=create_graph)
    for edge, (g, _) in found.items():  # once for each, however often it is listed
        if not isinstance(edge, Node) and edge.extra is not None and edge.extra.hooks is not None:
            found[edge] = (call_hooks(edge.extra.hooks, g, create_graph), False)
    result = []
    for i, (t, edge) in enumerate(zip(ins, targets, strict=True)):
        if edge in found:
            g, own = found[edge]
            result.append(g if create_graph else nodes.make_tensor(as_array(g) if own else copy(as_array(g))))
            found[edge] = (g, False)  # listed again, it gets memory of its own
        elif materialize_grads:
            result.append(nodes.make_tensor(zeros_like(t)))
        elif allow_unused:
            result.append(None)
        else:
            raise GradError(
                f"grad: input {i} of shape {tuple(t.shape)} takes no part in the outputs; pass allow_unused=True to get None for it"
            )
    return tuple(result)
