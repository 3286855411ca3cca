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
from tritensor.autograd.saved import Packed, hung
from tritensor.call_site import wrapper
from tritensor.layers import LayerArray


def lend(node: Node) -> None:
    """Note with the tensors that a new node has borrowed (see `borrows` of an op's record) that it did."""
    inputs, outputs, mark = node.inputs, node.outputs, ref(node)
    for place in node.op.borrows:
        if place >= 0:
            if inputs is not None and (x := _shown(inputs[place])) is not None:
                note(x.version or version_of(x), mark, place)
        elif outputs is not None and (held := outputs[~place]) is not None:
            note(held[1], mark, place)


def _shown(x: Any) -> Any:
    """The tensor that a node saved, itself or packed by a hook that gave back a tensor; None for anything else."""
    if type(x) is Packed:
        x = x.content
    return x if hasattr(x, "tracked") else None


def note(version: Version, mark: ref[Node], place: int) -> None:
    """Note with a tensor's version that a node borrowed it: as its input number `place`, or as its output number `~place`."""
    lent = version.lent
    if lent is None:
        version.lent = [(mark, place)]
    elif lent[-1][0]() is None:
        lent[-1] = (mark, place)
    else:
        if (n := len(lent)) >= 8 and n & (n - 1) == 0:  # forget the dead at each doubling
            lent[:] = [entry for entry in lent if entry[0]() is not None]
        lent.append((mark, place))


def borrowing(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is made of ops, where PyTorch's keeps something else than its arguments and results: what its nodes save of these is borrowed."""

    @wrapper
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
    """Note what the nodes that are younger than `since` have saved of tensors with these versions, and of the results."""
    seen: set[int] = set()
    results = _tensors((found,))
    stack, versions = [x.node for x in results], versions | {id(x.version) for x in results if x.version is not None}
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or node.sequence <= since or id(node) in seen:
            continue
        seen.add(id(node))
        stack += node.edges
        for i, x in enumerate(node.inputs or ()):
            if (saved := _shown(x)) is not None and id(saved.version) in versions:
                note(saved.version, ref(node), i)
        for i, held in enumerate(node.outputs or ()):
            if held is not None and id(held[1]) in versions:
                note(held[1], ref(node), ~i)


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
    """Put a copy in the place of what a node borrowed, unless it has let go of it or a hook has packed it into memory of its own."""
    held = list((node.outputs if place < 0 else node.inputs) or ())
    if not held:
        return
    x = held[~place][0] if place < 0 else held[place]
    if type(x) is Packed:
        if (saved := _shown(x)) is not None and saved.version is version:
            x.content = nodes.make_tensor(_copied(saved.array, copies))
    elif place < 0:
        held[~place] = (_copied(x, copies), Version())
        node.outputs = tuple(held)
    elif getattr(x, "version", None) is version:
        held[place] = hung(nodes.make_tensor(_copied(x.array, copies)), node.edges[place])
        node.inputs = tuple(held)


def _copied(array: Any, copies: dict[int, Any]) -> Any:
    """A copy of an array, one for all nodes that look at it."""
    held = copies.get(id(array))
    if held is None:
        made = copy(array) if type(array) is LayerArray else copied_as(array, array)
        held = copies[id(array)] = (array, made)  # the array too, so that its id stays its own
    return held[1]
