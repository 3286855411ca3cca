"""Interpreter of ops on wrapped tensors: the highest transform among its inputs takes it apart into ops on the tensors below (see tritensor.ground.transforms).

Each level has a graph of its own for the derivatives that are taken inside it. An op is recorded at its own level and, while it is taken apart,
at every level below: so a derivative sees exactly what was computed between its entry and its end, and everything nests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.autograd.saved import note_all_borrowed
from tritensor.dispatch import apply, run_planned
from tritensor.dispatch.nodes import share, written
from tritensor.func.rules import map_op
from tritensor.func.tangents import push, zeros_like
from tritensor.func.wrapping import below, dual, hang, highest, lay_like, level_of, node_of, recording, settle, wrap
from tritensor.ground.errors import TransformError
from tritensor.ground.providers import provider
from tritensor.ground.transforms import DISPATCH, GRAD, JVP, VMAP, Level, WrappedArray, running
from tritensor.ops.table import Op, ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.aliasing.views import find_views, take_path
from tritensor.tensor.core import Tensor, new_tensor


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """An op of which an input is wrapped: what `dispatch.apply` does, a level at a time."""
    inputs = tuple([settle(x) for x in inputs])
    level = highest(inputs)
    if level is None:
        return apply(op, *inputs, **attrs)
    if level.kind != DISPATCH:  # whose handlers may know other shapes
        op.shape(
            *[x._array if isinstance(x, Tensor) else x for x in inputs], **attrs
        )  # which refuses in the words of what the function sees
    if op.mutates:
        return _assign(op, inputs, attrs) if level.kind != DISPATCH else _dispatching().run_mutating(op, inputs, attrs)
    outs = _KINDS[level.kind](op, level, inputs, attrs)
    record(op, level, inputs, attrs, outs)
    if op.view and level_of(inputs[0]) is level and level_of(outs[0]) is level:  # a handler may give what is no view
        share(outs[0], inputs[0], op, attrs)  # a view of a wrapped tensor is one at its level, too: writes reach both
    return outs if op.public > 1 else outs[0]


def _run_in_grad(op: Op, level: Level, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Inside a derivative: the op below, recorded there as the derivative was called."""
    with recording(level):
        out = run_planned(op, [below(x, level) for x in inputs], attrs)
    return tuple([wrap(y, level) for y in (out if op.public > 1 else (out,))])


def _run_in_vmap(op: Op, level: Level, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Inside vmap: the op's rule for batches."""
    values = tuple([below(x, level) for x in inputs])
    flags = tuple([level_of(x) is level and x._array.batched for x in inputs])
    if True not in flags:  # no input differs between the examples: the op runs once
        out = run_planned(op, values, attrs)
        return tuple([wrap(y, level) for y in (out if op.public > 1 else (out,))])
    out = map_op(op, level, values, flags, attrs)
    return tuple([wrap(y, level, batched=True) for y in (out if op.public > 1 else (out,))])


def _run_in_jvp(op: Op, level: Level, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Inside jvp: the op of the primals, and its derivative along the tangents."""
    primals = tuple([below(x, level) for x in inputs])
    tangents = tuple([x._array.tangent if level_of(x) is level else None for x in inputs])
    out = run_planned(op, primals, attrs)
    outs = out if op.public > 1 else (out,)
    moved = push(op, primals, tangents, attrs, outs) if any(t is not None for t in tangents) else (None,) * len(outs)
    if op.view:  # of a tangent that lies as its primal does: a copy would miss what is written
        return (new_tensor(WrappedArray(level, outs[0], False, moved[0])),)
    return tuple([dual(y, level, t, tangents) for y, t in zip(outs, moved, strict=True)])


def _dispatching() -> Any:
    """Who runs what lies below all transforms, in classes with a __torch_dispatch__."""
    return provider("torch_dispatch.interpreter")


def _run_in_dispatch(op: Op, level: Level, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Below autograd: as handlers say."""
    found: tuple[Tensor, ...] = _dispatching().run(op, inputs, attrs)
    return found


_KINDS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    GRAD: _run_in_grad, VMAP: _run_in_vmap, JVP: _run_in_jvp, DISPATCH: _run_in_dispatch,
}  # fmt: skip


def _edge(x: Any, level: Level) -> Any:
    """Where the gradient of an input goes: only what is of the op's own level, or where the level is open, is in its graph."""
    if not isinstance(x, Tensor) or not x._tracked or not (level.open or level_of(x) is level):
        return None
    return x._node if x._node is not None else x


def record(op: Op, level: Level, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...]) -> None:
    """Leave a node at the level, where a derivative is asked for there."""
    if op.rule is None or not state.enabled or level.quiet:
        return
    edges = tuple([_edge(x, level) for x in inputs])
    if not any(e is not None for e in edges):
        return
    node = node_of(op, inputs, attrs, outs, edges)
    node.level = level  # type: ignore[attr-defined]
    if state.borrows_saved:
        note_all_borrowed(node)
    hang(outs, node, op.public)


# -- writes in place
def _assign(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """An op that overwrites an input: indexed assignment, by its twin that does not. Raises TransformError for others."""
    if op.name != "index_assign":
        raise TransformError(f"{op.name}: it overwrites its inputs and cannot be transformed; call it outside vmap, grad and jvp")
    x, v, *indices = inputs
    since = next_sequence()  # nodes younger than this one keep a copy of the old contents
    value = ops.index_put(x, v, *indices, accumulate=False, **attrs)
    if type(value._array) is WrappedArray:
        adopt(x, value, "setitem")
    write(x._array, value, "setitem", since)
    written(op, (x,))


def write(target: WrappedArray, given: Tensor, name: str, since: int | None = None, beside: tuple[Tensor, ...] = ()) -> None:
    """Write values over what a wrapped tensor shows, at every level below; see `overwrite`."""
    if type(target) is not WrappedArray or target.level.kind == DISPATCH:
        _dispatching().write(target, given)
        return
    level, under, source = target.level, target.value, given._array
    mine = type(source) is WrappedArray and source.level is level
    value = source.value if mine else given
    beside = (given, *beside)
    if level.kind == VMAP:
        if mine and source.batched and not target.batched:
            raise _make_room_error("in place")
        if target.batched and not (mine and source.batched):
            value = ops.expand(value, shape=under._array.shape)  # one value for all examples
        overwrite(under, value, name, since, beside)
        return
    if level.kind == JVP:
        overwrite(under, value, name, since, beside)  # refused, it leaves the tangent as it was
        if target.tangent is not None:
            tangent = source.tangent if mine else None
            overwrite(target.tangent, 0 if tangent is None else tangent, name, since, beside)  # what is written from outside does not move
        return
    with recording(level):
        overwrite(under, value, name, since, beside)


def _make_room_error(name: str) -> TransformError:
    return TransformError(
        f"vmap: {name}: a tensor that is the same for all examples would be written with values that differ between them, for which it has no "
        "room; use the out-of-place form, or make the tensor from a mapped one (x.new_zeros(...), zeros_like(x))"
    )


def adopt(x: Tensor, value: Tensor, name: str) -> None:
    """Let x, which is about to be written with a value of a higher level, stand at that level, with the tensor that it is a view of and all
    other views. Raises TransformError where the level is vmap's, which would need memory for every example."""
    wanted: Level = value._array.level
    have = level_of(settle(x))
    if type(x._array) is WrappedArray and not x._array.level.alive:
        x._set_array(settle(x)._array)  # the transform is over, and its wrapper would stand in the way
    chain = [level for level in _list_levels(value) if have is None or level.number > have.number]
    for level in chain:
        if level.kind == VMAP and (level is not wanted or value._array.batched or _is_batched(value, level)):
            raise _make_room_error(name)
        _lift(x, level)
    if wanted.kind == JVP and level_of(x) is wanted and value._array.tangent is not None:
        _give_tangents(x, value._array.tangent)


def _list_levels(x: Tensor) -> list[Level]:
    """The levels of a tensor, the lowest first."""
    found: list[Level] = []
    level = level_of(x)
    while level is not None:
        found.insert(0, level)  # from the lowest: levels are put over one another in this order
        x = x._array.value
        level = level_of(x)
    return [level for level in found if level.alive and level.kind != DISPATCH]


def _is_batched(x: Tensor, level: Level) -> bool:
    while level_of(x) is not None:
        if level_of(x) is level:
            return bool(x._array.batched)
        x = x._array.value
    return False


def _lift(x: Tensor, level: Level) -> None:
    """Put a level over x, over the tensor that it is a view of, and over all live views of that."""
    root = x if x._view_path is None else x._view_path[0]
    under = new_tensor(root._array)
    under._version_counter, under._node, under._tracked = (
        root._version_counter,
        root._node,
        root._tracked,
    )  # what lay there keeps its place in its own graph
    for view in (x, *find_views(root)):
        if view is not root:
            view._set_array(WrappedArray(level, take_path(view._view_path[1:], under)))  # type: ignore[index]
            view._node, view._tracked = None, False  # found anew at the level, where the base has no node yet
    root._set_array(WrappedArray(level, under))
    root._set_node(None)


def _give_tangents(x: Tensor, tangent: Tensor) -> None:
    """Let a tensor of jvp that is about to be written with a tangent have one with room for it, with the tensor that it is a view of and all views."""
    root = x if x._view_path is None else x._view_path[0]
    if type(root._array) is not WrappedArray or root._array.level is not x._array.level:
        root = x
    old = root._array.tangent
    whole = lay_like(zeros_like(root._array.value), root._array.value) if old is None else old
    missing = [
        level for level in _list_levels(tangent) if level.kind == VMAP and _is_batched(tangent, level) and not _is_batched(whole, level)
    ]
    if not missing and x._array.tangent is not None:
        return
    if missing:  # a tangent that differs between examples needs room for each
        whole = lay_like(like(zeros_like(root._array.value), tangent), root._array.value)
        if old is not None:
            whole.copy_(old)  # type: ignore[attr-defined]
    for view in (x, *find_views(root)):
        if view is not root and type(view._array) is WrappedArray:
            view._array.tangent = take_path(view._view_path[1:], whole)  # type: ignore[index]
    root._array.tangent = whole


def like(made: Tensor, x: Tensor) -> Tensor:
    """A new tensor beside x, which has room for an element of each example as x has, so that it can be written in place."""
    if type(made._array) is WrappedArray:
        return made
    batches = [level for level in _list_levels(x) if level.kind == VMAP and _is_batched(x, level)]
    if not batches:
        return made
    found: Any = ops.copy(ops.expand(made, shape=(*[level.size for level in batches], *made._array.shape)))
    for level in batches:
        found = wrap(found, level, batched=True)
    return found  # type: ignore[no-any-return]


# -- random numbers
def draw(op: Op, attrs: dict[str, Any]) -> Tensor:
    """An op without inputs that draws numbers: inside a vmap with randomness="different" each example has its own."""
    different = [level for level in running.levels if level.kind == VMAP and level.randomness == "different"]
    if not different:
        return _run_unwrapped(op, attrs)
    if "shape" in attrs:
        sizes = tuple([level.size for level in different])
        found = _run_unwrapped(op, {**attrs, "shape": (*sizes, *attrs["shape"])})
    else:
        found = _draw_each(op, attrs, different)
    for level in different:
        found = wrap(found, level, batched=True)
    return found


def spread(x: Tensor, around: Level | None = None) -> Tensor:
    """x with an element for each example of every vmap with randomness="different", for an op that draws for the elements of an input; of
    those alone that surround a level, where that is given."""
    drawing = [level for level in running.levels if level.kind == VMAP and level.randomness == "different"]
    levels = [level for level in drawing if (around is None or level.number < around.number) and not _is_batched(x, level)]
    if not levels:
        return x
    ones: Tensor = ops.full(shape=tuple([level.size for level in levels]), value=1, dtype=x._array.dtype, device=x.device)
    for level in levels:
        ones = wrap(ones, level, batched=True)
    found: Tensor = ops.mul(x, ones)
    return found


def _draw_each(op: Op, attrs: dict[str, Any], different: list[Level]) -> Tensor:
    """A permutation, which has no shape: one after the other, each from its own place in the stream."""
    count = 1
    for level in different:
        count *= level.size
    step = -(-int(attrs["n"]) // 2) or 1  # randperm takes a block of the stream for each two numbers
    rows = [_run_unwrapped(op, {**attrs, "offset": attrs["offset"] + i * step}) for i in range(count)]
    return ops.reshape(ops.stack(*rows, dim=0), shape=(*[level.size for level in different], *rows[0]._array.shape))


def _run_unwrapped(op: Op, attrs: dict[str, Any]) -> Tensor:
    before, running.levels = running.levels, ()  # so that the op draws once, and not for each level again
    try:
        found: Tensor = apply(op, **attrs)
    finally:
        running.levels = before
    return found


# -- the rest
def add(a: Any, b: Any) -> Any:
    """The sum of two gradients of which one is wrapped."""
    return ops.add(new_tensor(a), new_tensor(b))._array  # by ops: the interpreter finds the level of either


def detached(array: WrappedArray) -> WrappedArray:
    """The same memory outside the graph at every level, and without tangents."""
    if array.instance is not None:
        made: WrappedArray = _dispatching().detached(array)
        return made
    return WrappedArray(array.level, array.value.detach(), array.batched)
