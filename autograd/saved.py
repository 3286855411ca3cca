"""Saved tensors of a node: hooks that pack and unpack them, and copies of those that are borrowed, before somebody writes over them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from tritensor.autograd import node as nodes
from tritensor.autograd.accumulate import copy, copy_in_layout
from tritensor.autograd.engine import edge_of
from tritensor.autograd.modes import no_grad, state
from tritensor.autograd.node import FREED, Branch, ComplexNode, Node, Version, next_sequence, version_of
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import GradError
from tritensor.ground.thread_state import here, leave_path
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.table import registry

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]


class Packed:
    """The content that a pack hook gave for one tensor, and the hook that gives the tensor back."""

    __slots__ = ("__weakref__", "content", "own", "unpack")

    def __init__(self, x: Any, hooks: tuple[Pack, Unpack]) -> None:
        pack, self.unpack = hooks
        before = x._version  # compared below: a hook that writes would change what other nodes have saved
        given = x.detach() if x._tracked else x  # without its place in the graph, which would be a cycle through the node
        with no_grad():
            self.content = pack(given)
        if x._version != before:
            raise GradError("pack hook: it wrote over the tensor that it was given, which others use too; clone() it first")
        self.own = self.content is given

    def tensor(self, record: bool) -> Any:
        """The tensor that the unpack hook gives. Raises TypeError where it gives something else."""
        if record:
            found = self.unpack(self.content)
        else:
            with no_grad():
                found = self.unpack(self.content)
        if not hasattr(found, "_tracked"):
            raise TypeError(f"unpack hook: it returned a {type(found).__name__}; return the tensor that the pack hook was given")
        return found


def attach_to_edge(x: Any, edge: Any) -> Any:
    """An unpacked tensor at the place in the graph that it had: below a node, at a leaf, or at nothing."""
    if edge_of(x) is edge:
        return x
    if edge is None:
        return x.detach()
    if isinstance(edge, Node):
        return nodes.make_output(x._array, edge)
    return nodes.make_output(x._array, Node(registry["copy"], (edge,), None, None, {}, ((x._array.shape, x._array.dtype),)))


class Saved:
    """A tensor that a Function saved, as it was when forward ended.

    An own output is kept as a bare array, because output -> node -> output would be a cycle; it gets its place in the graph back.
    Where there are hooks on saved tensors it is what those made of it.
    """

    __slots__ = ("computed", "edge", "output", "packed", "seen", "tensor", "version")

    def __init__(self, t: Any, output: int | None) -> None:
        self.output = output
        self.packed = None
        if state.saving:
            self.packed = Packed(t, state.saving[-1])
            self.edge = edge_of(t) if output is None else None
            return
        self.computed = output is None and t._node is not None
        self.version: Version | None = version_of(t) if output is not None else t._version_counter
        self.seen = 0 if self.version is None else self.version.value
        self.tensor = t if output is None else nodes.make_tensor(t._array)

    def unpacked(self, node: Any) -> Any:
        if self.packed is not None:
            found = self.packed.tensor(state.enabled)
            if self.output is None or node is None:
                return attach_to_edge(found, self.edge)
            return attach_to_edge(found, node if node.op.public == 1 else Branch(node, self.output))
        version = self.tensor._version_counter if self.output is None else self.version
        if version is not None and version.value != self.seen:
            raise GradError(
                f"backward: a saved tensor of shape {tuple(self.tensor._array.shape)} was overwritten in place by {version.writer} "
                f"(version {version.value}, saved at {self.seen}); clone() it before the write"
            )
        if self.computed and self.tensor._node is None:
            raise nodes.detached("a Function", f"a tensor of shape {tuple(self.tensor._array.shape)}")
        if self.output is None:
            return self.tensor
        if node is None:
            return self.tensor
        made = nodes.make_output(self.tensor._array, node if node.op.public == 1 else Branch(node, self.output))
        made._version_counter = version
        return made


class _Unpacking:
    """Unpacking, which a node with packed tensors does before it hands one out."""

    __slots__ = ()

    def _saved(self, kind: str, k: Any, needs: tuple[bool, ...], tensors: bool) -> Any:
        node: Any = self
        if kind == "input" and node.inputs is not FREED and type(packed := node.inputs[k]) is Packed:
            found = packed.tensor(tensors)
            return attach_to_edge(found, node.edges[k]) if tensors else found._array
        if kind == "output" and node.outputs is not FREED and node.outputs[k] is not None:
            found = node.outputs[k][0].tensor(tensors)
            return nodes.make_output(found._array, node if node.op.public == 1 else Branch(node, k)) if tensors else found._array
        return super()._saved(kind, k, needs, tensors)  # type: ignore[misc]


class PackedNode(_Unpacking, Node):
    """A node whose saved tensors are packed."""

    __slots__ = ()


class PackedComplexNode(_Unpacking, ComplexNode):
    """The same for complex numbers."""

    __slots__ = ()


def pack_node(node: Node, hooks: tuple[Pack, Unpack]) -> None:
    """Pack what a new node saves."""
    inputs, outputs = node.inputs, node.outputs
    if inputs is not None:
        node.inputs = tuple([Packed(x, hooks) if hasattr(x, "_tracked") else x for x in inputs])
    if outputs is not None:
        at = [node if node.op.public == 1 else Branch(node, k) if k < node.op.public else None for k in range(len(outputs))]
        node.outputs = tuple([y if y is None else (Packed(_wrap_output(y[0], e), hooks), y[1]) for y, e in zip(outputs, at, strict=True)])
    if inputs is not None or outputs is not None:
        node.__class__ = PackedComplexNode if type(node) is ComplexNode else PackedNode


def _wrap_output(array: Any, edge: Any) -> Any:
    """A saved output as its pack hook sees it."""
    return nodes.make_tensor(array) if edge is None else nodes.make_output(array, edge)


def _watch_node(node: Node) -> None:
    """Pack, note and report a new node, as the modes that are on want it."""
    if state.saving and type(node) in (Node, ComplexNode):  # a Function packs what it saves by itself
        pack_node(node, state.saving[-1])
    if state.borrows_saved:
        note_all_borrowed(node)
    if state.anomaly is not None:
        state.anomaly.note(node)


def watch(on: bool) -> None:
    """Begin or cease to look at nodes in this thread, where a mode wants it."""
    shortcuts.turn("watching", 1 if on else -1)
    state.watch = _watch_node if state.saving or state.borrows_saved or state.anomaly is not None else None


def push_hooks(hooks: tuple[Pack, Unpack]) -> None:
    """Set hooks on what is saved from now on. Raises RuntimeError where they were refused."""
    if state.saving_refused is not None:
        raise GradError(state.saving_refused)
    leave_path()
    state.saving = (*state.saving, hooks)
    watch(True)


def pop_hooks() -> None:
    """Take the innermost hooks away."""
    state.saving = state.saving[:-1]
    watch(False)


@contextmanager
def pack_at_end() -> Iterator[None]:
    """Inside, pack hooks wait until the end: a hook may end the run (a checkpoint's second one), and what a function writes beside its result is in
    place by then, as in PyTorch, whose functions write such things before their results are saved."""
    if not state.saving:
        yield
        return
    waiting: list[Node] = []
    before, state.watch = state.watch, waiting.append
    try:
        yield
    finally:
        state.watch = before
    for node in waiting:
        _watch_node(node)


# -- what is borrowed
def note_borrowed(node: Node) -> None:
    """Note with the tensors that a new node has borrowed (see `borrows` of an op's record) that it did."""
    inputs, outputs, mark = node.inputs, node.outputs, ref(node)
    for place in node.op.borrows:
        if place >= 0:
            if inputs is not None and (x := _saved_tensor(inputs[place])) is not None:
                note_borrower(x._version_counter or version_of(x), mark, place)
        elif outputs is not None and (held := outputs[~place]) is not None:
            note_borrower(held[1], mark, place)


def note_all_borrowed(node: Node) -> None:
    """The same of all that a node has saved, whatever its op borrows."""
    mark = ref(node)
    for i, x in enumerate(node.inputs or ()):
        if (saved := _saved_tensor(x)) is not None:
            note_borrower(saved._version_counter or version_of(saved), mark, i)
    for i, held in enumerate(node.outputs or ()):
        if held is not None:
            note_borrower(held[1], mark, ~i)


@contextmanager
def borrow_all_saved() -> Iterator[None]:
    """Inside, nodes borrow all that they save: whoever writes over it, then or later, leaves them a copy."""
    before, state.borrows_saved = state.borrows_saved, True
    watch(True)
    try:
        yield
    finally:
        state.borrows_saved = before
        watch(False)


def _saved_tensor(x: Any) -> Any:
    """The tensor that a node saved, itself or packed by a hook that gave back a tensor; None for anything else."""
    if type(x) is Packed:
        x = x.content
    return x if hasattr(x, "_tracked") else None


def note_borrower(version: Version, mark: ref[Node], place: int) -> None:
    """Note with a tensor's version that a node borrowed it: as its input number `place`, or as its output number `~place`."""
    borrowers = version.borrowers
    if borrowers is None:
        version.borrowers = [(mark, place)]
    elif borrowers[-1][0]() is None:  # the place of a dead node: a weight used in a loop makes no longer list
        borrowers[-1] = (mark, place)
    else:
        if (n := len(borrowers)) >= 8 and n & (n - 1) == 0:  # forget the dead at each doubling
            borrowers[:] = [entry for entry in borrowers if entry[0]() is not None]
        borrowers.append((mark, place))


def borrow_saved(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is made of ops, where PyTorch's keeps something else than its arguments and results: what its nodes save of these is borrowed."""

    @wrapper
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        since = next_sequence()
        noting = here.noting
        noted = 0 if noting is None else len(noting.steps)
        found = f(*args, **kwargs)
        if noting is not None:
            noting.borrow(noted)
        if state.enabled:
            _note_younger(found, since, {id(version_of(x)) for x in _tensors((*args, *kwargs.values()))})
        return found

    return call


def _tensors(values: Iterable[Any]) -> list[Any]:
    """The tensors among some values, and in lists among them."""
    found = []
    for x in values:
        if hasattr(x, "_tracked"):
            found.append(x)
        elif isinstance(x, list | tuple):
            found += _tensors(x)
    return found


def _note_younger(found: Any, since: int, versions: set[int]) -> None:
    """Note what the nodes that are younger than `since` have saved of tensors with these versions, and of the results."""
    seen: set[int] = set()
    results = _tensors((found,))
    stack, versions = [x._node for x in results], versions | {id(x._version_counter) for x in results if x._version_counter is not None}
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or node.sequence <= since or id(node) in seen:
            continue
        seen.add(id(node))
        stack += node.edges
        for i, x in enumerate(node.inputs or ()):
            if (saved := _saved_tensor(x)) is not None and id(saved._version_counter) in versions:
                note_borrower(saved._version_counter, ref(node), i)
        for i, held in enumerate(node.outputs or ()):
            if held is not None and id(held[1]) in versions:
                note_borrower(held[1], ref(node), ~i)


def copy_for_borrowers(t: Any) -> None:
    """t's memory is about to be written: the nodes that borrowed it get copies of what they look at, each where it stood in the graph."""
    version = t._version_counter
    if version is None or version.borrowers is None:
        return
    borrowers, version.borrowers = version.borrowers, None  # each gets its copy once; who saves after the write borrows anew
    copies: dict[int, Any] = {}
    for mark, place in borrowers:
        node = mark()
        if node is not None and node.sequence > version.stamp:  # else somebody wrote without asking, which the node refuses by itself
            _store_copy(node, place, version, copies)


def _store_copy(node: Node, place: int, version: Version, copies: dict[int, Any]) -> None:
    """Put a copy in the place of what a node borrowed, unless it has let go of it or a hook has packed it into memory of its own."""
    held = list((node.outputs if place < 0 else node.inputs) or ())
    if not held:
        return
    x = held[~place][0] if place < 0 else held[place]
    if type(x) is Packed:
        if (saved := _saved_tensor(x)) is not None and saved._version_counter is version:
            x.content = nodes.make_tensor(_copy_once(saved._array, copies))
    elif place < 0:
        held[~place] = (_copy_once(x, copies), Version())
        node.outputs = tuple(held)
    elif getattr(x, "_version_counter", None) is version:
        held[place] = attach_to_edge(nodes.make_tensor(_copy_once(x._array, copies)), node.edges[place])
        node.inputs = tuple(held)


def _copy_once(array: Any, copies: dict[int, Any]) -> Any:
    """A copy of an array, one for all nodes that look at it."""
    held = copies.get(id(array))
    if held is None:
        made = copy(array) if type(array) is WrappedArray else copy_in_layout(array, array)
        held = copies[id(array)] = (array, made)  # the array too, so that its id stays its own
    return held[1]
