"""What a node keeps where PyTorch's keeps something else: whoever writes over such a tensor first leaves the node a copy of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from tritensor.autograd import node as nodes
from tritensor.autograd.accumulate import copied_as, copy
from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, Version, next_sequence, version_of
from tritensor.autograd.saved import hung
from tritensor.layers import LayerArray


def lend(node: Node) -> None:
    """Note with the tensors that a new node has borrowed (see `borrows` of an op's record) that it did."""
    op = node.op
    if node.inputs:
        last = len(op.inputs) - 1
        for i, x in enumerate(node.inputs):
            if hasattr(x, "tracked") and op.inputs[min(i, last)] in op.borrows:
                note(version_of(x), node, i)
    for i, held in enumerate(node.outputs or ()):
        if held is not None and op.outputs[i] in op.borrows:
            note(held[1], node, ~i)


def note(version: Version, node: Node, place: int) -> None:
    """Note with a tensor's version that a node borrowed it: as its input number `place`, or as its output number `~place`."""
    lent = version.lent
    if lent is None:
        version.lent = [(ref(node), place)]
        return
    if (n := len(lent)) >= 8 and n & (n - 1) == 0:  # forget the dead at each doubling
        lent[:] = [entry for entry in lent if entry[0]() is not None]
    lent.append((ref(node), place))


def borrowing(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is made of ops, where PyTorch's keeps something else than its arguments: whatever its nodes save of these is borrowed."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        since = next_sequence()
        found = f(*args, **kwargs)
        if state.enabled:
            _lend_all(found, since, {id(version_of(x)) for x in _tensors((*args, *kwargs.values()))})
        return found

    return call


def _tensors(values: Iterable[Any]) -> list[Any]:
    """The tensors among some values, and in lists among them."""
    found = []
    for x in values:
        if hasattr(x, "tracked"):
            found.append(x)
        elif isinstance(x, list | tuple):
            found += _tensors(x)
    return found


def _lend_all(found: Any, since: int, versions: set[int]) -> None:
    """Note what the nodes that are younger than `since` have saved of tensors with these versions."""
    seen: set[int] = set()
    stack = [x.node for x in _tensors((found,))]
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or node.sequence <= since or id(node) in seen:
            continue
        seen.add(id(node))
        stack += node.edges
        for i, x in enumerate(node.inputs or ()):
            if id(getattr(x, "version", None)) in versions:
                note(x.version, node, i)


def reclaim(t: Any) -> None:
    """t's memory is about to be written: the nodes that borrowed it get copies of what they look at, each where it stood in the graph."""
    version = t.version
    if version is None or version.lent is None:
        return
    lent, version.lent = version.lent, None
    copies: dict[int, Any] = {}
    for mark, place in lent:
        node = mark()
        if node is not None and node.sequence > version.stamp:  # else somebody wrote without asking, which the node refuses by itself
            _keep_copy(node, place, version, copies)


def _keep_copy(node: Node, place: int, version: Version, copies: dict[int, Any]) -> None:
    """Put a copy in the place of what a node borrowed, unless it has let go of it or hooks have packed it."""
    if place < 0:
        held = list(node.outputs or ())
        if held and held[~place] is not None and held[~place][1] is version:
            held[~place] = (_copied(held[~place][0], copies), Version())
            node.outputs = tuple(held)
        return
    saved = list(node.inputs or ())
    if saved and getattr(saved[place], "version", None) is version:
        saved[place] = hung(nodes.make_tensor(_copied(saved[place].array, copies)), node.edges[place])
        node.inputs = tuple(saved)


def _copied(array: Any, copies: dict[int, Any]) -> Any:
    """A copy of an array, one for all nodes that look at it."""
    held = copies.get(id(array))
    if held is None:
        made = copy(array) if type(array) is LayerArray else copied_as(array, array)
        held = copies[id(array)] = (array, made)  # the array too, so that its id stays its own
    return held[1]
