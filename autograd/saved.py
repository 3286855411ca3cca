"""Hooks on saved tensors: what a node keeps is packed when it is made, and unpacked when its gradient is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import edge_of
from tritensor.autograd.modes import no_grad, state
from tritensor.autograd.node import FREED, ComplexNode, Node, branch, watch_nodes
from tritensor.errors import GradError
from tritensor.table import registry

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]


class Packed:
    """What a pack hook gave for one tensor, and the hook that gives the tensor back."""

    __slots__ = ("__weakref__", "content", "own", "unpack")

    def __init__(self, x: Any, hooks: tuple[Pack, Unpack]) -> None:
        pack, self.unpack = hooks
        before = x._version
        given = x.detach() if x.tracked else x  # without its place in the graph, which would be a cycle through the node
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
        if not hasattr(found, "tracked"):
            raise TypeError(f"unpack hook: it returned a {type(found).__name__}; return the tensor that the pack hook was given")
        return found


def hung(x: Any, edge: Any) -> Any:
    """An unpacked tensor at the place in the graph that it had: below a node, at a leaf, or at nothing."""
    if edge_of(x) is edge:
        return x
    if edge is None:
        return x.detach()
    if isinstance(edge, Node):
        return nodes.make_output(x.array, edge)
    return nodes.make_output(x.array, Node(registry["copy"], (edge,), None, None, {}, ((x.array.shape, x.array.dtype),)))


class _Unpacking:
    """What a node with packed tensors does otherwise: it unpacks them."""

    __slots__ = ()

    def _saved(self, kind: str, k: Any, needs: tuple[bool, ...], tensors: bool) -> Any:
        node: Any = self
        if kind == "input" and node.inputs is not FREED and type(packed := node.inputs[k]) is Packed:
            found = packed.tensor(tensors)
            return hung(found, node.edges[k]) if tensors else found.array
        if kind == "output" and node.outputs is not FREED and node.outputs[k] is not None:
            found = node.outputs[k][0].tensor(tensors)
            return nodes.make_output(found.array, node if node.op.public == 1 else branch(node, k)) if tensors else found.array
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
        node.inputs = tuple([Packed(x, hooks) if hasattr(x, "tracked") else x for x in inputs])
    if outputs is not None:
        at = [node if node.op.public == 1 else branch(node, k) if k < node.op.public else None for k in range(len(outputs))]
        node.outputs = tuple([y if y is None else (Packed(_shown(y[0], e), hooks), y[1]) for y, e in zip(outputs, at, strict=True)])
    if inputs is not None or outputs is not None:
        node.__class__ = PackedComplexNode if type(node) is ComplexNode else PackedNode


def _shown(array: Any, edge: Any) -> Any:
    """A saved output as its pack hook sees it."""
    return nodes.make_tensor(array) if edge is None else nodes.make_output(array, edge)


def _look(node: Node) -> None:
    """What is done with each node while somebody watches."""
    if state.saving and type(node) in (Node, ComplexNode):
        pack_node(node, state.saving[-1])
    if state.anomaly is not None:
        state.anomaly.note(node)


def watch(on: bool) -> None:
    """Begin or cease to look at nodes in this thread, where a mode wants it."""
    watch_nodes(1 if on else -1)
    state.watch = _look if state.saving or state.anomaly is not None else None


def push(hooks: tuple[Pack, Unpack]) -> None:
    """Set hooks on what is saved from now on. Raises RuntimeError where they were refused."""
    if state.saving_refused is not None:
        raise GradError(state.saving_refused)
    state.saving = (*state.saving, hooks)
    watch(True)


def pop() -> None:
    """Take the innermost hooks away."""
    state.saving = state.saving[:-1]
    watch(False)
