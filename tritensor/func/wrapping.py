"""Wrapped tensors: what lies under one, how one is made, and what their ops leave in the graph (see tritensor.ground.transforms)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import Branch, Node, Version
from tritensor.dispatch.level_nodes import ComplexLevelNode, LevelNode
from tritensor.ground import dtypes
from tritensor.ground.strides import is_ordered, memory_order
from tritensor.ground.transforms import Level, WrappedArray
from tritensor.ops.array import same_memory
from tritensor.ops.table import Op, ops
from tritensor.tensor.aliasing.views import copy_in_order
from tritensor.tensor.core import Tensor, new_tensor


def settle(x: Any) -> Any:
    """A tensor without the layers of transforms that are over."""
    while isinstance(x, Tensor) and type(x._array) is WrappedArray and not x._array.level.alive:
        x = x._array.value
    return x


def level_of(x: Any) -> Level | None:
    """The transform that a tensor is wrapped by, None for a plain one."""
    return x._array.level if isinstance(x, Tensor) and type(x._array) is WrappedArray else None


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
    return x._array.value if level_of(x) is level else x


def wrap(value: Tensor, level: Level, batched: bool = False) -> Tensor:
    """A tensor of a level over a value."""
    return new_tensor(WrappedArray(level, value, batched))


def to_front(x: Tensor, dim: int) -> Tensor:
    """A view with a dimension brought to the front."""
    n = len(x._array.shape)
    return x if dim == 0 else ops.permute(x, dims=(dim, *[d for d in range(n) if d != dim]))  # type: ignore[no-any-return]


def dual(value: Tensor, level: Level, tangent: Tensor | None, apart: Iterable[Tensor | None] = ()) -> Tensor:
    """A tensor of jvp's level: a value and its tangent, which gets memory of its own where it shares some with one of `apart`."""
    if tangent is not None:
        laid = lay_like(tangent, value)
        if laid is tangent and any([x is not None and same_memory(x._array, tangent._array) for x in apart]):
            laid = copy_in_order(tangent, _order(value))  # a write to one would move the other
        tangent = laid
    return new_tensor(WrappedArray(level, value, False, tangent))


def lay_like(t: Tensor, x: Tensor) -> Tensor:
    """A tensor of x's shape with its dimensions in memory as those of x, so that each view of x is one of it: t itself, or a copy.

    A tangent, which is viewed and written wherever its primal is, would else refuse a view, or have it on a copy.
    """
    shape, have, want = tuple(x._array.shape), t.stride(), x.stride()
    if have == want or 0 in shape or all([a == b or n == 1 for a, b, n in zip(have, want, shape, strict=True)]):
        return t
    return t if is_ordered(shape, have, _order(x)) else copy_in_order(t, _order(x))


def _order(x: Tensor) -> tuple[int, ...]:
    """x's dimensions from the outermost in memory to the innermost."""
    return memory_order(tuple(x._array.shape), tuple([abs(s) for s in x.stride()]))


def in_graph(x: Any) -> bool:
    """True where a derivative of any level, or of none, watches a tensor."""
    while isinstance(x, Tensor):
        if x._tracked:
            return True
        if type(x._array) is not WrappedArray:
            return False
        if in_graph(x._array.tangent):
            return True
        x = x._array.value
    return False


class recording:
    """What lies below a transform is recorded where both its caller and the function inside record."""

    __slots__ = ("before", "level")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.before = state.enabled
        state.enabled = self.before and self.level.recording  # no_grad inside the function holds for the innermost level alone

    def __exit__(self, *exc: object) -> None:
        state.enabled = self.before


def node_of(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...], edges: tuple[Any, ...], kind: type[Node] | None = None
) -> Node:
    """A node that holds what the op's rule may ask for."""
    kept_in, kept_out, _ = op.keep(tuple([e is not None for e in edges]))
    last = len(kept_in) - 1  # ops of many inputs say for the last what holds for all the rest
    saved = tuple([x if kept_in[min(i, last)] else None for i, x in enumerate(inputs)])
    meta = tuple([(x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in inputs])
    if kind is None:
        complexes = not op.view and any([x._array.dtype.kind == "c" for x in (*inputs, *outs) if isinstance(x, Tensor)])
        kind = ComplexLevelNode if complexes else LevelNode  # views move complex numbers, and compute none
    node = kind(op, edges, saved, None, attrs, meta)
    held: list[Any] = []
    for i, k in enumerate(kept_out):
        if not k or i >= len(outs):  # no rule names what only kernels use
            held.append(None)
            continue
        if outs[i]._version_counter is None:
            outs[i]._version_counter = Version()
        held.append((outs[i]._array, outs[i]._version_counter))
    node.outputs = tuple(held)
    return node


def hang(outs: tuple[Tensor, ...], node: Node, public: int) -> None:
    """Hang outputs at their node."""
    if public == 1:
        if dtypes.has_gradient(outs[0]._array.dtype):
            outs[0]._node, outs[0]._tracked = node, True
        return
    for i, out in enumerate(outs):
        if dtypes.has_gradient(out._array.dtype):
            out._node, out._tracked = Branch(node, i), True
