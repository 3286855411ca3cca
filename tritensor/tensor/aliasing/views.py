"""Views in the graph: how a write through a tensor, its base or one of its views reaches the nodes of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd import engine
from tritensor.autograd.hooks import forget_grad, keep_grad
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.names import camel
from tritensor.autograd.node import Node, version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.dispatch.level_nodes import step_node, unrecorded
from tritensor.ground.errors import GradError
from tritensor.ground.strides import memory_extent, memory_order
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, CudaArray, as_strided, device_of, element_strides, empty, same_memory
from tritensor.ops.lazy_array import leave_before_change, run_before_write, settle
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import ops, registry
from tritensor.tensor import rare_attributes as extras
from tritensor.tensor.core import Tensor, ensure_extra, new_tensor
from tritensor.tensor.rare_attributes import Extra

Path = tuple[tuple[Any, dict[str, Any], tuple[Any, ...]], ...]
_node, _tracked = Tensor.__dict__["_node"], Tensor.__dict__["_tracked"]

_REASONS = {
    "no_grad": "was made under no_grad, so it is not clear whether the write belongs to the graph; make the view and write it both inside "
    "no_grad or both outside",
    "parts": "is one of several that one call gave (split, chunk, unbind, iteration), which a write would tear apart; "
    "index the tensor (x[0], x[2:4]) for a view to write to, or use the out-of-place form",
    "window": "is a window (as_strided) that reaches beyond the view it was taken of, so that the gradient of what is written there would be "
    "lost; take it of the base",
    "gaps": "is a window (as_strided) on memory with gaps, or elements that share cells; take contiguous() first",
    "resized": "reaches beyond what its base has been since one of them was resized; take it anew",
    "function": "came out of a Function, whose backward a write would leave out; clone() it inside forward, or use the out-of-place form",
}


class StaleView(Tensor):
    """What a view becomes, for a while, when its base is written in the graph: it finds its new node when somebody looks for it.

    So a write costs nothing for views that are not used again, and plans, which read `_tracked` and `_node` of every tensor, pay
    nothing for views at all.
    """

    __slots__ = ()
    becomes: type[Tensor] = Tensor  # when it has found its node

    @property
    def _tracked(self) -> bool:  # type: ignore[override]
        assert self._view_path is not None
        return bool(self._view_path[0]._tracked)

    @_tracked.setter
    def _tracked(self, value: bool) -> None:
        _find_node(self)
        self._tracked = value

    @property
    def _node(self) -> Node | None:  # type: ignore[override]
        _find_node(self)
        return self._node

    @_node.setter
    def _node(self, value: Node | None) -> None:
        _find_node(self)
        self._node = value


class DetachedBaseView(Tensor):
    """What a view in the graph becomes when its base leaves it: it keeps its way back until its memory is written, by whomever, and leads nowhere then,
    or where its base has been led since."""

    __slots__ = ()
    becomes: type[Tensor] = Tensor

    @property
    def _node(self) -> Node | None:  # type: ignore[override]
        if self._version_counter.value == self._extra.base_left_at:  # type: ignore[union-attr]
            return _node.__get__(self)  # type: ignore[no-any-return]
        if self._extra.retains:  # type: ignore[union-attr]
            forget_grad(_node.__get__(self), self)
        _find_node(self)
        return self._node

    @_node.setter
    def _node(self, value: Node | None) -> None:
        self.__class__ = self.becomes  # type: ignore[assignment]
        self._node = value


# type(x).__name__ shows in messages and reprs: these classes are a matter of the graph alone.
for _kind in (StaleView, DetachedBaseView):
    _kind.__name__, _kind.__qualname__, _kind.__module__ = Tensor.__name__, Tensor.__qualname__, Tensor.__module__


def _kind_for(view: Tensor, kind: type[Tensor]) -> type[Tensor]:
    """The form of one of these classes that a view of its class takes: a view that is an instance of a user's class stays one."""
    cls = getattr(view, "becomes", type(view))
    if cls is Tensor:
        return kind
    found = _kinds.get((cls, kind))
    if found is None:
        names = {"__slots__": (), "becomes": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        meta: Any = type(cls)
        found = _kinds[cls, kind] = meta(cls.__name__, (kind, cls), names)
    return found


_kinds: dict[tuple[type[Tensor], type[Tensor]], type[Tensor]] = {}


def _mark_base_left(view: Tensor) -> None:
    ensure_extra(view).base_left_at = version_of(view).value
    view.__class__ = _kind_for(view, DetachedBaseView)


extras.mark_base_left = _mark_base_left  # type: ignore[assignment]


def _find_node(view: Tensor) -> None:
    """Give a stale view the node that leads through its base's node of now; one that was left behind stays in the graph where that leads nowhere."""
    assert view._view_path is not None
    base, *steps = view._view_path
    extra = view._extra
    if extra is not None and extra.origin:
        # Only now, when somebody looks: a view that is not used again costs nobody an error.
        raise GradError(f"the base of this view of shape {view._array.shape} was written in place, and the view {_REASONS[extra.origin]}")
    node = engine.edge_of(base)
    # A constant base needs no nodes; a left one gets them, and they lead nowhere.
    if node is not None or isinstance(view, DetachedBaseView):
        for op, attrs, meta in steps:
            node = step_node(op, node, attrs, meta, view._array)
    if extra is not None and extra.retains and node is not None:
        keep_grad(node, view)
    _node.__set__(view, node)
    _tracked.__set__(view, node is not None)
    view.__class__ = view.becomes  # type: ignore[attr-defined]
    views = base._extra.views
    mark = views.stale.pop(id(view), None)
    if mark is not None:
        views.fresh[id(view)] = mark


def mark_views_stale(base: Tensor) -> None:
    """The base has another node: what its live views have is the way to the old contents."""
    views = base._extra.views if base._extra is not None else None
    if views is None:
        return
    # Swapped first: refreshing a view puts it back into `fresh`.
    fresh, views.fresh = views.fresh, {}
    for key, mark in fresh.items():
        view = mark()
        if view is not None:
            if view._extra is not None and view._extra.retains:
                forget_grad(_node.__get__(view), view)  # the old contents' gradient is not the view's any more
            view.__class__ = _kind_for(view, StaleView)
            views.stale[key] = mark
    # Amortised: each sweep costs no more than the views added since the last.
    if len(views.stale) > 2 * views.swept + 32:
        views.stale = {key: mark for key, mark in views.stale.items() if mark() is not None}
        views.swept = len(views.stale)


def find_views(base: Any) -> list[Any]:
    """The live views of a tensor, those of views among them."""
    views = base._extra.views if base._extra is not None else None
    return [v for mark in (*views.fresh.values(), *views.stale.values()) if (v := mark()) is not None] if views is not None else []


def is_write_recorded(x: Tensor) -> bool:
    """Whether a graph has a part in what is written over x."""
    return state.enabled and (x._tracked or (x._view_path is not None and x._view_path[0]._tracked))


def refuse_write(x: Tensor, name: str, written: str = "written") -> None:
    """Raise GradError where x cannot be written (or change its shape) in place in the graph."""
    extra = x._extra
    base = x._base
    if extra is not None and extra.origin:
        raise GradError(f"{name}: this view of shape {x._array.shape} {_REASONS[extra.origin]}")
    # A leaf's old value is what .grad refers to.
    if x._tracked and x._node is None:
        raise GradError(
            f"{name}: a leaf that requires grad cannot be {written} in place; do it under no_grad(), or use the out-of-place form"
        )
    if base is not None and ((base._tracked and base._node is None) or is_view_of_leaf(x)):
        raise GradError(
            f"{name}: this is a view of a leaf that requires grad, which cannot be {written} in place; do it under no_grad(), or on a clone()"
        )


def is_view_of_leaf(x: Tensor) -> bool:
    """Whether a view leads, through views alone, to a leaf that requires grad, which may itself be a view of what does not."""
    node: Any = x._node
    while isinstance(node, Node) and getattr(node.op, "view", False):
        node = node.edges[0]
    return node is not None and not isinstance(node, Node)


def rebase_history(x: Tensor, value: Tensor, who: str, own: bool = False) -> None:
    """After memory was written: hang x, its base and all their views where the new contents came from.

    `own` says that the value was computed for this write and nobody else has it.
    """
    if x._view_path is not None:
        base, *steps = x._view_path
        base._set_node(ViewWrite(tuple(steps), base, value, who))
        mark_views_stale(base)
        return
    # Nobody else holds the value: x takes its node, which saves a copy node.
    if own and value._tracked:
        x._set_node(value._node)
    elif x._tracked or not value._tracked:  # `y.zero_()`, `y.copy_(z)`: what y was gets zeros
        x._set_node(ViewWrite((), x, value, who))
    else:
        # One step behind the value, and not in its place: a hook on x, or a gradient of x, is not the value's.
        x._set_node(step_node(registry["copy"], engine.edge_of(value), {}, ((value._array.shape, value._array.dtype),), x._array))
    mark_views_stale(x)


def mark_parts(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Several views that one call gives: none of them can be written in the graph."""
    for part in parts:
        if part._extra is None:  # no other thread knows a part yet
            part._extra = Extra()
        part._extra.origin = part._extra.origin or "parts"
    if here.noting is not None:
        here.noting.note_call(mark_parts, parts)
    return parts


def change_shape(x: Tensor, f: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Tensor:
    """Let x look at its memory as the view `f(x, ...)` does: x itself, its place in the graph, and the way from it to its views.

    Counts as a write: a node that saved x saved its shape. Recorded under no_grad too, where x is in the graph, since the values stay.
    """
    if is_write_recorded(x):
        refuse_write(x, name, "reshaped")
    leaf = x.is_leaf
    # The shape of a computed tensor is part of its graph even under no_grad: its values stay.
    with enable_grad() if state.enabled or not leaf else no_grad():
        y = f(x, *args, **kwargs)
    copy_for_borrowers(x)
    leave_before_change(x)
    version_of(x).bump_loosely(name)
    if y is x:
        return x
    assert y._view_path is not None
    if x._view_path is not None:
        x._view_path = y._view_path
    elif x._extra is not None and x._extra.views is not None:
        # x's views were taken of its old shape: their path now begins by going back to it.
        back = _inverse_step(y._view_path[-1], y)
        for mark in (*x._extra.views.fresh.values(), *x._extra.views.stale.values()):
            view = mark()
            if view is not None and view is not y and view._view_path is not None:
                base, *steps = view._view_path
                view._view_path = (base, back, *steps)
    x._set_array(y._array)
    if not leaf:
        x._set_node(y._node)
    return x


def _inverse_step(step: tuple[Any, dict[str, Any], tuple[Any, ...]], y: Tensor) -> tuple[Any, dict[str, Any], tuple[Any, ...]]:
    """The step from y back to what a permutation or a reshape of single dimensions made it of."""
    op, attrs, ((shape, _),) = step
    given = ((y._array.shape, y._array.dtype),)
    if op.name == "permute":
        dims = attrs["dims"]
        return op, {"dims": tuple(sorted(range(len(dims)), key=dims.__getitem__))}, given
    return registry["reshape"], {"shape": shape}, given


def leave_base(x: Tensor) -> None:
    """x gets memory of its own: it is nobody's view from now on."""
    if x._view_path is None:
        return
    views = x._view_path[0]._extra.views
    views.fresh.pop(id(x), None)
    views.stale.pop(id(x), None)
    x._view_path = None
    if x._extra is not None:
        x._extra.origin = ""


def take_path(path: Path, x: Any) -> Any:
    """Take the same view of another array or tensor."""
    for op, attrs, _ in path:
        x = getattr(ops, op.name)(x, **attrs) if isinstance(x, Tensor) else op.cpu(x, **attrs)
    return x


def copy_in_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """A dense copy whose dimensions lie in memory in an order, the outermost first."""
    if order == tuple(range(len(order))):
        return ops.copy(x)  # type: ignore[no-any-return]
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return ops.permute(ops.copy(ops.permute(x, dims=order)), dims=back)  # type: ignore[no-any-return]


def copy_into(target: Array, source: Array) -> None:
    """Write source over target's window, both of one shape, dtype and device; they may overlap."""
    if here.noting is not None:
        here.noting.spoil("it writes")
    if type(target) is MetaArray:
        return
    target, source = settle(target), settle(source)
    run_before_write(target)
    if not isinstance(target, CudaArray):
        np.copyto(target, source)
        return
    copy = registry["copy"].forward
    assert copy is not None
    if same_memory(target, source):
        source = copy(source)
    copy(source, out=target)


class _WriteOp:
    """What a ViewWrite shows as its op."""

    name = "copy_slices"
    inputs = ("base", "value")
    outputs = ("y",)
    broadcasts = False


class ViewWrite(Node):
    """A base after a write through one of its views: the value gets the view of the gradient, the old base the rest."""

    __slots__ = ("level", "path", "strides", "who")

    def __init__(self, path: Path, base: Tensor, value: Tensor, who: str) -> None:
        meta = ((base._array.shape, base._array.dtype), (value._array.shape, value._array.dtype))
        super().__init__(_WriteOp, (engine.edge_of(base), engine.edge_of(value)), None, None, None, meta)
        self.path = path
        self.level = base._array.level if type(base._array) is WrappedArray else None
        self.strides = element_strides(base._array)
        self.who = who

    def name(self) -> str:
        return "CopySlices" if self.path else camel(self.who.rstrip("_")) + "Backward0"

    def _like_base(self, g: Array) -> Array:
        """A copy of g laid out as the base was, so that the path's views are possible."""
        assert self.meta is not None
        shape = self.meta[0][0]
        low, high = memory_extent(shape, self.strides)
        laid = as_strided(empty((max(high - low + 1, 0),), g.dtype, device_of(g)), shape, self.strides, -low)
        copy_into(laid, g)
        return laid

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        if type(g) is WrappedArray:
            with unrecorded(self.level):
                return tuple([None if x is None else x._array for x in self._of_layers(new_tensor(g), needs)])
        if type(g) is MetaArray:
            assert self.meta is not None
            return tuple([empty(m[0], m[1], g.device) if need else None for m, need in zip(self.meta, needs, strict=True)])
        g = settle(g)
        laid = self._like_base(g)
        # A view of the copy, so that zeroing it below clears the written part of the base's gradient.
        inner = take_path(self.path, laid)
        value = engine.copy(inner) if needs[1] else None
        if needs[0]:
            zero = registry["full"]
            run = zero.forward if isinstance(g, CudaArray) else zero.reference
            copy_into(inner, run(shape=inner.shape, value=0, dtype=inner.dtype, device=device_of(g)))  # type: ignore[misc]
        return (laid if needs[0] else None), value

    def _of_layers(self, g: Tensor, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """The gradients inside a transform, where writing is for its own functions."""
        laid = copy_in_order(g, memory_order(tuple(g._array.shape), tuple([abs(s) for s in self.strides])))
        part = take_path(self.path, laid)
        value = ops.copy(part) if needs[1] else None
        if not needs[0]:
            return None, value
        part.zero_()
        return laid, value

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        if type(g._array) is WrappedArray:
            with enable_grad():
                return self._of_layers(g, needs)
        laid = new_tensor(self._like_base(g._array))
        if g._tracked:
            # _copy_like_base works on bare arrays: the step is recorded by hand for the second derivative.
            laid._set_node(Node(registry["copy"], (engine.edge_of(g),), None, None, {}, ((g._array.shape, g._array.dtype),)))
        with enable_grad():
            value = ops.copy(take_path(self.path, laid)) if needs[1] else None
            if needs[0]:
                hole = take_path(self.path, laid)
                copy_into(hole._array, engine.zeros_like(hole))
                if laid._tracked:
                    rebase_history(hole, new_tensor(hole._array), "zero_")
        return (laid if needs[0] else None), value
