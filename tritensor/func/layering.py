"""Layered tensors: what lies under one, how one is made, and the nodes of their graphs (see tritensor.layers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor import dtypes
from tritensor.autograd import node as nodes
from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import Branch, ComplexNode, Node, Version
from tritensor.layers import GRAD, LayerArray, Level
from tritensor.table import Op
from tritensor.tensor.core import Tensor, new_tensor


def settle(x: Any) -> Any:
    """A tensor without the layers of transforms that are over."""
    while isinstance(x, Tensor) and type(x.array) is LayerArray and not x.array.level.alive:
        x = x.array.value
    return x


def level_of(x: Any) -> Level | None:
    """The transform that a tensor is layered by, None for a plain one."""
    return x.array.level if isinstance(x, Tensor) and type(x.array) is LayerArray else None


def highest(inputs: Sequence[Any]) -> Level | None:
    """The highest transform among settled inputs."""
    found = None
    for x in inputs:
        level = level_of(x)
        if level is not None and (found is None or level.number > found.number):
            found = level
    return found


def below(x: Any, level: Level) -> Any:
    """What lies under a tensor at a level; x itself where it is not of that level."""
    return x.array.value if level_of(x) is level else x


def wrap(value: Tensor, level: Level, batched: bool = False, tangent: Tensor | None = None) -> Tensor:
    """A tensor of a level over a value."""
    return new_tensor(LayerArray(level, value, batched, tangent))


def in_graph(x: Any) -> bool:
    """Whether a derivative of any level, or of none, watches a tensor."""
    while isinstance(x, Tensor):
        if x.tracked:
            return True
        if type(x.array) is not LayerArray:
            return False
        if in_graph(x.array.tangent):
            return True
        x = x.array.value
    return False


class recording:
    """What lies below a transform is recorded where both its caller and the function inside record."""

    __slots__ = ("before", "level")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.before = state.enabled
        state.enabled = self.before and self.level.recording

    def __exit__(self, *exc: object) -> None:
        state.enabled = self.before


class unrecorded:
    """Gradients that nobody will differentiate at a level: it leaves no nodes. What lies below a derivative records as before."""

    __slots__ = ("before", "level", "quiet")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        level = self.level
        self.before, self.quiet = state.enabled, level.quiet
        level.quiet = True
        if level.kind != GRAD or not level.alive:
            state.enabled = False

    def __exit__(self, *exc: object) -> None:
        state.enabled, self.level.quiet = self.before, self.quiet


class LayerNode(Node):
    """The node of an op on layered tensors: its rule runs on tensors always.

    The gradient is lifted to the node's level where it is a plain one, so that what the rule computes of it is an op of that level.
    """

    __slots__ = ("level",)
    level: Level

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        made = tuple([None if x is None else lifted(x, self.level) for x in g]) if type(g) is tuple else lifted(g, self.level)
        with unrecorded(self.level):
            found = self._of(made, needs)
        return tuple([None if x is None else x.array for x in found])

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return self._of(g, needs)

    def _of(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._call(self.op.rule, g, needs, True)  # type: ignore[arg-type]


class ComplexLayerNode(LayerNode, ComplexNode):
    """The same of an op of complex numbers."""

    __slots__ = ()

    def _of(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._gradients(g, needs)


def lifted(x: Any, level: Level) -> Tensor:
    """An array as a tensor of a level, while that lasts."""
    array = nodes.as_array(x)
    below_it = type(array) is not LayerArray or not array.level.alive or array.level.number < level.number
    return new_tensor(LayerArray(level, new_tensor(array)) if below_it and level.alive else array)


def node_of(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...], edges: tuple[Any, ...], kind: type[Node] | None = None
) -> Node:
    """A node that holds what the op's rule may ask for."""
    kept_in, kept_out, _ = op.keep(tuple([e is not None for e in edges]))
    last = len(kept_in) - 1
    saved = tuple([x if kept_in[min(i, last)] else None for i, x in enumerate(inputs)])
    meta = tuple([(x.array.shape, x.array.dtype) if isinstance(x, Tensor) else None for x in inputs])
    if kind is None:
        complexes = not op.view and any([x.array.dtype.kind == "c" for x in (*inputs, *outs) if isinstance(x, Tensor)])
        kind = ComplexLayerNode if complexes else LayerNode
    node = kind(op, edges, saved, None, attrs, meta)
    held: list[Any] = []
    for i, k in enumerate(kept_out):
        if not k or i >= len(outs):  # no rule names what only kernels use
            held.append(None)
            continue
        if outs[i].version is None:
            outs[i].version = Version()
        held.append((outs[i].array, outs[i].version))
    node.outputs = tuple(held)
    return node


def hang(outs: tuple[Tensor, ...], node: Node, public: int) -> None:
    """Hang outputs at their node."""
    if public == 1:
        if dtypes.has_gradient(outs[0].array.dtype):
            outs[0].node, outs[0].tracked = node, True
        return
    for i, out in enumerate(outs):
        if dtypes.has_gradient(out.array.dtype):
            out.node, out.tracked = Branch(node, i), True
