"""One call of backward or grad while it runs: where it starts, what it walks, and the places in the graph that it is asked about."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd.modes import state
from tritensor.autograd.node import AccumulateGrad, Node, Severed
from tritensor.ground.errors import GradError, ShapeError, TransformError
from tritensor.ground.providers import provider
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, empty
from tritensor.ops.lazy_array import LazyArray
from tritensor.ops.table import ops, registry

_by_sequence = attrgetter("sequence")


class Task:
    """One call of backward or grad, for as long as it runs: `state.task` of its thread. `walk` is what it walks: nodes, those that lead to
    what is asked for (None: all), and roots."""

    walk: tuple[Sequence[Node], set[Any] | None, Sequence[Any]] = ((), None, ())
    running: Node | None = None  # the node whose backward runs, in anomaly mode
    ends: list[Callable[[], Any]] | None = None  # called when it has ended
    outer: Task | None = None  # the call in which this one was made, by a function's backward or a hook
    casting: Any = None  # autocast's settings outside of the call

    def __enter__(self) -> Task:
        self.outer, state.task = state.task, self
        self.casting = state.casting
        if self.casting is not None:  # gradients have the types that their ops gave, not autocast's
            state.casting = None
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None and self.ends is not None:  # a callback belongs to a walk that ended well
                self.call_ends()
        finally:
            state.task = self.outer
            if self.casting is not None:
                state.casting = self.casting

    def outermost(self) -> Task:
        """The call that the user made."""
        task = self
        while task.outer is not None:
            task = task.outer
        return task

    def at_end(self, call: Callable[[], Any]) -> None:
        """Call this when the walk has ended well."""
        if self.ends is None:
            self.ends = []
        self.ends.append(call)

    def call_ends(self) -> None:
        """It has ended well."""
        while self.ends:
            self.ends.pop(0)()  # one by one: a callback may queue another

    @property
    def plain(self) -> bool:
        """True where it goes to all leaves."""
        return self.walk[1] is None

    def reaches(self, edge: Any) -> bool:
        """True where this call brings a gradient to a node or leaf."""
        order, useful, roots = self.walk
        if useful is not None and edge not in useful:
            return False
        return any(edge is r for r in roots) or any(edge is n or any(edge is e for e in n.edges) for n in order)


class GradientEdge(NamedTuple):
    """A place in the graph that a gradient goes to: a node, and which of its outputs. Given to grad or backward in place of a tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # the place itself, where it was made of a tensor

    @property
    def place(self) -> Any:
        """The node or leaf that the engine knows."""
        if self.ownership_token is not None:
            return self.ownership_token
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        return self.node if self.node.op.public == 1 else nodes.Branch(self.node, self.output_nr)

    @property
    def _tracked(self) -> bool:
        """True: the engine takes an edge for a tensor that requires grad."""
        return True

    @property
    def shape(self) -> Any:
        """That of a leaf; () where only the gradient would tell."""
        return getattr(getattr(self.place, "_array", None), "shape", ())


def tensors_of(who: str, what: str, given: Any, or_none: bool = False) -> list[Any]:
    """A tensor, or several, as a list. Raises TypeError, naming the argument, for anything else."""
    if hasattr(given, "_tracked"):
        return [given]
    if given is None or isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{who}: {what} is {given!r}; give a tensor, or a list or tuple of them")
    found = list(given)
    for i, t in enumerate(found):
        if not hasattr(t, "_tracked") and not (or_none and t is None):
            raise TypeError(f"{who}: {what}[{i}] is a {type(t).__name__}; give a tensor{' or None' if or_none else ''}")
    return found


def list_start_gradients(who: str, what: str, outputs: list[Any], name: str, given: Any) -> list[Any]:
    """The gradients to start from, one or None for each output. Raises GradError, naming the argument, for another number of them."""
    if given is None:
        return [None] * len(outputs)
    found = tensors_of(who, name, given, or_none=True)
    if len(found) != len(outputs):
        raise GradError(f"{who}: {len(outputs)} {what} and {len(found)} {name}; give one (or None) for each")
    return found


def pull_with_anomaly_check(n: Node, g: Any, needs: tuple[bool, ...], tensors: bool) -> tuple[Any, ...]:
    """A node's gradients in anomaly mode: an error, or NaN, is told with the forward call."""
    watch, task = state.anomaly, state.task
    before = None if task is None else task.running
    try:
        if task is not None:
            task.running = n
        found = n.pull_tensors(g, needs) if tensors else n.pull(g, needs)
        watch.check(n, found)
    except Exception:
        watch.tell(n)
        raise
    finally:
        if task is not None:
            task.running = before
    return found


def start_gradient(output: Any, grad: Any, create_graph: bool, who: str) -> Any:
    """The gradient to start from: the one given, checked, or ones for a scalar."""
    if not output._tracked or type(getattr(output, "_node", None)) is Severed:
        raise GradError(
            f"{who}: the tensor of shape {tuple(output.shape)} has no graph behind it; set requires_grad=True on an input, "
            "and compute it outside no_grad and without detach() or .data"
        )
    if type(output) is GradientEdge:
        if grad is None:
            raise GradError(f"{who}: a GradientEdge does not tell its shape; give the gradient to start from")
        return grad if create_graph else grad._array
    if grad is None:
        if output._array.size != 1:
            raise GradError(
                f"{who}: the tensor of shape {tuple(output.shape)} is not a scalar, so the gradient to start from is ambiguous; "
                f"reduce it (.sum(), .mean()) or pass gradient= of that shape"
            )
        like = output._array
        if like.dtype.kind == "c":
            raise GradError(
                f"{who}: the tensor is {output.dtype.name}, and the gradient to start from is only implied for a real number; take .real, "
                ".imag or .abs() of it, or pass gradient="
            )
        if type(like) is WrappedArray and like.instance is not None:
            ones = provider("torch_dispatch.interpreter").ones_like(output)
            return ones if create_graph else ones._array
        if (segment := _segment_of(like)) is not None:
            array: Array = provider("lazy_evaluation.recording").as_lazy(
                ops.full(shape=tuple(like.shape), value=1.0, dtype=like.dtype, device=output.device)._array, segment
            )
        elif type(like) is np.ndarray:
            array = np.ones(like.shape, like.dtype)
        elif (on := output.device).type == "cuda":
            array = registry["full"].forward(shape=like.shape, value=1.0, dtype=like.dtype, device=on)  # type: ignore[misc]
        else:
            array = empty(like.shape, like.dtype, on) if on.type == "meta" else np.ones(like.shape, like.dtype)
        return nodes.make_tensor(array) if create_graph else array
    given, wanted = grad._array, output._array
    if tuple(given.shape) != tuple(wanted.shape):
        raise ShapeError(f"{who}: gradient {tuple(grad.shape)} for a tensor of shape {tuple(output.shape)}; both must be the same")
    if not (type(given) is np.ndarray and type(wanted) is np.ndarray) and grad.device != output.device:
        raise GradError(f"{who}: gradient on {grad.device} for a tensor on {output.device}; move it with .to({str(output.device)!r})")
    if given.dtype is not wanted.dtype and given.dtype != wanted.dtype:
        grad = ops.cast(grad, dtype=wanted.dtype)
    if not create_graph and (segment := _segment_of(wanted)) is not None:
        return provider("lazy_evaluation.recording").as_lazy(grad._array, segment)
    return grad if create_graph else grad._array


def _segment_of(array: Any) -> Any:
    """Where the gradients of an array are noted: with what is to compute it, or where all ops are; None where they run as they are called."""
    return array.storage.segment if type(array) is LazyArray and array.pending else here.segment


_looped: set[str] = set()  # why rows went one after another, each told once


def map_rows(gos: list[Any], once: Callable[[list[Any]], tuple[Any, ...]]) -> tuple[Any, ...]:
    """`once(gradients to start from)` for every row of `gos` at once: what it returns gets a first dimension, of a row for each.

    Entries of what is returned may be None. Raises ShapeError where the batches are not of one size.
    """
    counts = {g._array.shape[0] if g is not None and g._array.shape else 0 for g in gos}
    if len(counts) != 1 or 0 in counts:  # a row of a 0-d tensor or of None does not exist
        raise ShapeError(
            "grad: is_grads_batched wants grad_outputs of one more dimension, the first, of one size for all; give them as tritensor.stack(...) makes them"
        )
    there: list[bool] = []

    def mapped(*rows: Any) -> tuple[Any, ...]:
        found = once(list(rows))
        there[:] = [g is not None for g in found]
        return tuple([g for g in found if g is not None])

    func: Any = provider("func")
    try:
        columns = iter(func.vmap(mapped, randomness="same")(*gos))  # what a backward draws it draws once, as for one row
        return tuple([next(columns) if is_there else None for is_there in there])
    except TransformError as e:
        _warn_loop(len(gos[0]), e)
    found = [once([g[i] for g in gos]) for i in range(len(gos[0]))]
    return tuple([None if column[0] is None else ops.stack(*column, dim=0) for column in zip(*found, strict=True)])


def _warn_loop(n: int, why: Exception) -> None:
    said = str(why)
    if said not in _looped:
        _looped.add(said)
        warnings.warn(
            f"grad: is_grads_batched: the {n} rows of grad_outputs go one after another, as they cannot be mapped: {said}", stacklevel=4
        )


# Piecewise linear ops. Their gradients do not change with their inputs, but as in PyTorch the inputs count among what those are made of: a second
# derivative by them is 0, and no error.
FLAT = frozenset({
    "adaptive_max_pool", "avg_pool2d", "avg_pool3d", "edge_pad", "hardshrink", "hardsigmoid", "hardtanh", "leaky_relu", "max_pool2d", "max_pool3d",
    "prelu", "relu", "softshrink", "threshold",
})  # fmt: skip


def note_flat_inputs(n: Node, gradients: Iterable[Any]) -> None:
    """Let the gradients of a flat op's inputs, made with create_graph, know of those inputs."""
    for g, e in zip(gradients, n.edges, strict=True):
        made = None if g is None else g._node
        if isinstance(made, Node) and e is not None:
            made.flat = (*getattr(made, "flat", ()), e)


def find_behind_flat(roots: Iterable[Any]) -> set[Any]:
    """The nodes and leaves that a gradient of a flat op was made of, among all that lead to the roots."""
    begins = [e for n in _find_ancestors(roots) for e in getattr(n, "flat", ())]
    return _find_ancestors(begins) if begins else set()


def _find_ancestors(roots: Iterable[Any]) -> set[Any]:
    """All nodes and leaves that roots are made of."""
    seen: set[Any] = set()
    stack = [r for r in roots if r is not None]
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            if isinstance(e, Node):
                stack.extend([x for x in (*e.edges, *getattr(e, "flat", ())) if x is not None])
    return seen


def collect_nodes(roots: Sequence[Any]) -> list[Node]:
    """Every node that the roots lead to, newest first: the order in which gradients are complete."""
    found = list(dict.fromkeys([r for r in roots if isinstance(r, Node)]))
    seen: set[Any] = set(found)
    for n in found:  # which grows meanwhile
        for e in n.edges:
            if isinstance(e, Node) and e not in seen:
                seen.add(e)
                found.append(e)
    found.sort(key=_by_sequence, reverse=True)  # an edge leads to an older node: this is a topological order
    return found


def find_leading_nodes(order: list[Node], targets: set[Any]) -> set[Any]:
    """The nodes and leaves on a path to a target, targets included (ids of edges)."""
    useful = set(targets)
    for n in reversed(order):  # the oldest first, so that what a node leads to is decided before
        if n not in useful:
            for e in n.edges:
                if e is not None and e in useful:
                    useful.add(n)
                    break
    return useful


def count_hooked_uses(order: list[Node]) -> dict[Any, int]:
    """The number of edges that lead to each leaf that has hooks for when its gradient was added."""
    uses: dict[Any, int] = {}
    for n in order:
        for e in n.edges:
            if e is not None and not isinstance(e, Node) and e._extra is not None and e._extra.post_hooks:
                uses[e] = uses.get(e, 0) + 1
    return uses
