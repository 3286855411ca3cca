"""Nodes in the graphs of transforms, whose gradients are tensors always (see tritensor.ground.transforms)."""

from __future__ import annotations

from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import ComplexNode, Node, as_array
from tritensor.ground.transforms import DISPATCH, GRAD, Level, WrappedArray


class unrecorded:
    """Gradients that nobody will differentiate at a level: it leaves no nodes. What lies below a derivative records as before; below None, the
    ordinary graph, lies nothing."""

    __slots__ = ("before", "level", "quiet")

    def __init__(self, level: Level | None) -> None:
        self.level = level

    def __enter__(self) -> None:
        level = self.level
        self.before = state.enabled
        if level is not None:
            self.quiet, level.quiet = level.quiet, True
        if level is None or level.kind != GRAD or not level.alive:
            state.enabled = False

    def __exit__(self, *exc: object) -> None:
        state.enabled = self.before
        if self.level is not None:
            self.level.quiet = self.quiet


class LevelNode(Node):
    """The node of an op on wrapped tensors: its rule runs on tensors always.

    The gradient is lifted to the node's level where it is a plain one, so that what the rule computes of it is an op of that level.
    """

    __slots__ = ("level",)
    level: Level

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        made = tuple([None if x is None else lift(x, self.level) for x in g]) if type(g) is tuple else lift(g, self.level)
        with unrecorded(self.level):
            found = self._of(made, needs)
        return tuple([None if x is None else x._array for x in found])

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return self._of(g, needs)

    def _of(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._call(self.op.rule, g, needs, True)  # type: ignore[arg-type]


class ComplexLevelNode(LevelNode, ComplexNode):
    """The same of an op of complex numbers."""

    __slots__ = ()

    def _of(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._gradients(g, needs)


def lift(x: Any, level: Level) -> Any:
    """An array as a tensor of a level, while that lasts."""
    array = as_array(x)
    if level.kind == DISPATCH:  # whose tensors are made by handlers alone
        return nodes.make_tensor(array)
    below_it = type(array) is not WrappedArray or not array.level.alive or array.level.number < level.number
    return nodes.make_tensor(WrappedArray(level, nodes.make_tensor(array)) if below_it and level.alive else array)


def step_node(op: Any, edge: Any, attrs: dict[str, Any], meta: tuple[Any, ...], array: Any) -> Node:
    """The node of a step, such as a view, that keeps nothing and leads from an array back to an edge, in the graph of the array's level."""
    if type(array) is not WrappedArray:
        return Node(op, (edge,), None, None, attrs, meta)
    node = LevelNode(op, (edge,), None, None, attrs, meta)
    node.level = array.level
    return node
