"""In-place writes: memory first, then the graph, for tensors, their bases and their views."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.array import Array, CudaArray, as_strided, device_of, element_strides, empty, same_memory
from tritensor.autograd import engine
from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, Version
from tritensor.dispatch import takes_floats
from tritensor.errors import DeviceError, DTypeError, GradError, ShapeError
from tritensor.table import Op, Spec, ops, registry
from tritensor.tensor.core import Tensor, as_tensor, new_tensor

Path = tuple[tuple[Any, dict[str, Any], tuple[Any, ...]], ...]


def copy_into(target: Array, source: Array) -> None:
    """Write source over target's window, both of one shape, dtype and device; they may overlap."""
    if not isinstance(target, CudaArray):
        np.copyto(target, source)
        return
    copy = registry["copy"].forward
    assert copy is not None
    if same_memory(target, source):
        source = copy(source)
    copy(source, out=target)


def write_over(name: str, target: Tensor, operands: tuple[Any, ...], who: str) -> bool:
    """Compute the op `name` of operands straight into target's memory, which may be the first operand's: one pass, nothing allocated.

    Returns False, having done nothing, where that is not what `overwrite` would come to: a graph remembers the old contents, types or
    shapes have to be fitted, or memory is shared in part.
    """
    op = _direct(name, len(operands))
    a = target.array
    if op is None or _remembered(target) or dtypes.of(a.dtype).kind != "float" or not _own_cells(a):
        return False
    given: list[Any] = []
    whole = False
    for y in operands:
        if type(y) is float or (type(y) is int and abs(y) < 2**53):
            given.append(y)
            continue
        if not isinstance(y, Tensor) or (y.tracked and state.enabled):
            return False
        b = y.array
        if type(b) is not type(a) or b.dtype != a.dtype or (b is not a and (device_of(b) != device_of(a) or same_memory(a, b))):
            return False
        if b.shape != a.shape and not broadcasts_to(b.shape, a.shape):
            return False
        whole = whole or b.shape == a.shape
        given.append(b)
    if not whole:
        return False
    run: Any = op.forward if isinstance(a, CudaArray) else op.reference
    if not isinstance(a, CudaArray) and not isinstance(getattr(run, "bare", run), np.ufunc):
        return False  # a formula of several steps would read what its first step has overwritten
    run(*given, out=a)
    _bump(target, who)
    return True


@functools.cache
def _direct(name: str, count: int) -> Op | None:
    """The elementwise op of that name and number of inputs, if it gives floating results of its inputs' type."""
    op = registry.get(name)
    if op is None or not op.into or op.attrs or len(op.inputs) != count or not takes_floats(op):
        return None
    probe = Spec((), np.dtype(np.float32))
    return op if op.shape(*[probe] * count).dtype == probe.dtype else None


def _remembered(x: Tensor) -> bool:
    """Whether a graph has a part in what is written over x."""
    return state.enabled and (x.tracked or (x.extra is not None and x.extra.base is not None and x.extra.base.tracked))


def _own_cells(a: Array) -> bool:
    """Whether each element has a cell of its own: it is not expanded."""
    return 0 not in a.strides or not a.size or all(stride != 0 or n == 1 for n, stride in zip(a.shape, a.strides, strict=True))


def broadcasts_to(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to exactly `wide`."""
    return len(shape) <= len(wide) and all(m in (1, n) for m, n in zip(reversed(shape), reversed(wide), strict=False))


def _filled(x: Tensor, value: Any, name: str) -> bool:
    """Write a number straight over floating contents that no graph remembers; False, having done nothing, where that cannot be."""
    a = x.array
    if (type(value) is not float and type(value) is not int) or _remembered(x) or dtypes.of(a.dtype).kind != "float" or not _own_cells(a):
        return False
    full = registry["full"]
    if isinstance(a, CudaArray):
        assert full.forward is not None
        full.forward(shape=a.shape, value=value, dtype=a.dtype, device=a.storage.device, out=a)
    else:
        full.reference(shape=a.shape, value=value, dtype=a.dtype, device=x.device, out=a)
    _bump(x, name)
    return True


def overwrite(x: Tensor, value: Any, name: str) -> Tensor:
    """Make `value` (a tensor that broadcasts to x, or a number) the contents of x, in memory and in the graph.

    Raises GradError for a leaf that requires grad, ShapeError and DTypeError for a value that does not fit.
    """
    if not isinstance(value, Tensor) and _filled(x, value, name):
        return x
    value = _fitted(x, value, name)
    _refuse_leaf(x, name)
    if not _own_cells(x.array):
        raise ShapeError(
            f"{name}: the tensor of shape {x.array.shape} is expanded, several elements share one cell; write to a clone() or contiguous() copy"
        )
    _snapshot(x, value.node)
    copy_into(x.array, value.array)
    _bump(x, name)
    if state.enabled and (value.tracked or x.tracked or (x.extra is not None and x.extra.base is not None and x.extra.base.tracked)):
        _rebase(x, value)
    return x


def _snapshot(x: Tensor, node: Any) -> None:
    """`x.mul_(y)` needs the old x for y's gradient: give the node that computed the new contents a copy of the old ones."""
    if type(node) is not Node or not node.inputs or not any(s is x for s in node.inputs):
        return
    old = new_tensor(engine.copy(x.array))
    old.node, old.tracked = x.node, x.tracked
    node.inputs = tuple([old if s is x else s for s in node.inputs])


def _fitted(x: Tensor, value: Any, name: str) -> Tensor:
    """The value as a tensor of x's shape, dtype and device."""
    if not isinstance(value, Tensor):
        value = (
            ops.full(shape=tuple(x.array.shape), value=value, dtype=x.array.dtype, device=x.device)
            if np.isscalar(value)
            else as_tensor(value, x)
        )
    if value.device != x.device:
        raise DeviceError(f"{name}: the tensor is on {x.device}, the value on {value.device}; move the value with .to({str(x.device)!r})")
    if value.array.dtype != x.array.dtype:
        have, want = dtypes.of(value.array.dtype), x.dtype
        rank = {"bool": 0, "uint": 1, "int": 1, "float": 2, "float8": 2, "complex": 3}
        if rank[have.kind] > rank[want.kind]:
            raise DTypeError(
                f"{name}: the result is {have.name} and does not fit into {want.name}; use the out-of-place form, or convert with .to(...)"
            )
        value = ops.cast(value, dtype=x.array.dtype)
    if value.array.shape != x.array.shape:
        lead = value.array.shape[: max(value.ndim - x.ndim, 0)]
        stretched = value.array.shape[len(lead) :]
        if any(n != 1 for n in lead) or any(m not in (1, n) for m, n in zip(reversed(stretched), reversed(x.array.shape), strict=False)):
            raise ShapeError(f"{name}: a result of shape {value.array.shape} does not fit into {x.array.shape}; use the out-of-place form")
        if lead:
            value = ops.reshape(value, shape=stretched)
        value = ops.expand(value, shape=tuple(x.array.shape))
    return value


def _refuse_leaf(x: Tensor, name: str) -> None:
    if not state.enabled:
        return
    base = x.extra.base if x.extra is not None else None
    if x.tracked and x.node is None:
        raise GradError(
            f"{name}: a leaf that requires grad cannot be written in place; do it under no_grad(), or use the out-of-place form"
        )
    if base is not None and base.tracked and base.node is None:
        raise GradError(
            f"{name}: this is a view of a leaf that requires grad, which cannot be written in place; do it under no_grad(), or on a clone()"
        )


def _bump(x: Tensor, name: str) -> None:
    if x.version is None:
        x.version = Version()
    x.version.bump(name)


def _rebase(x: Tensor, value: Tensor) -> None:
    """After memory was written: hang x, its base and all their views where the new contents came from."""
    base = x.extra.base if x.extra is not None else None
    if base is None and not value.tracked and x.node is not None:  # `y.zero_()`: y stays in the graph, and what it was gets zeros
        x.node = ViewWrite((), x, value)
        _replay_views(x)
        return
    if base is None:
        x.tracked = value.tracked
        # One step behind the value, and not in its place: a hook on x, or a gradient of x, is not the value's.
        x.node = _step(registry["copy"], {}, value, ((value.array.shape, value.array.dtype),)) if value.tracked else None
        _replay_views(x)
        return
    assert x.extra is not None
    base.node = ViewWrite(x.extra.path, base, value)
    base.tracked = True
    _replay_views(base)


def _step(op: Any, attrs: dict[str, Any], source: Any, meta: tuple[Any, ...]) -> Node:
    return Node(op, (engine.edge_of(source) if isinstance(source, Tensor) else source,), None, None, attrs, meta)


def _live_views(base: Tensor) -> Iterator[Tensor]:
    for r in base.extra.views or () if base.extra is not None else ():
        view = r()
        if view is not None:
            yield view


def _replay_views(base: Tensor) -> None:
    """Give every live view of a base the graph that leads through the base's new node."""
    edge = engine.edge_of(base)
    for view in _live_views(base):
        assert view.extra is not None
        view.tracked = edge is not None
        node = edge
        if edge is not None:
            for op, attrs, meta in view.extra.path:
                node = _step(op, attrs, node, meta)
        view.node = node


def replay(path: Path, x: Any) -> Any:
    """Take the same view of another array or tensor."""
    for op, attrs, _ in path:
        x = getattr(ops, op.name)(x, **attrs) if isinstance(x, Tensor) else op.reference(x, **attrs)
    return x


class _WriteOp:
    """What a ViewWrite shows as its op."""

    name = "copy_slices"
    inputs = ("base", "value")
    outputs = ("y",)
    public = 1
    broadcasts = False


class ViewWrite(Node):
    """A base after a write through one of its views: the value gets the view of the gradient, the old base the rest."""

    __slots__ = ("path", "strides")

    def __init__(self, path: Path, base: Tensor, value: Tensor) -> None:
        meta = ((base.array.shape, base.array.dtype), (value.array.shape, value.array.dtype))
        super().__init__(_WriteOp, (engine.edge_of(base), engine.edge_of(value)), None, None, None, meta)
        self.path = path
        self.strides = element_strides(base.array)

    def name(self) -> str:
        return "CopySlices"

    def _like_base(self, g: Array) -> Array:
        """A copy of g laid out as the base was, so that the path's views are possible."""
        assert self.meta is not None
        shape = self.meta[0][0]
        low = sum(s * (n - 1) for n, s in zip(shape, self.strides, strict=True) if s < 0)
        high = sum(s * (n - 1) for n, s in zip(shape, self.strides, strict=True) if s > 0)
        laid = as_strided(empty((max(high - low + 1, 0),), g.dtype, device_of(g)), shape, self.strides, -low)
        copy_into(laid, g)
        return laid

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        laid = self._like_base(g)
        inner = replay(self.path, laid)
        value = engine.copy(inner) if needs[1] else None
        if needs[0]:
            zero = registry["full"]
            run = zero.forward if isinstance(g, CudaArray) else zero.reference
            copy_into(inner, run(shape=inner.shape, value=0, dtype=g.dtype, device=device_of(g)))  # type: ignore[misc]
        return (laid if needs[0] else None), value

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        laid = new_tensor(self._like_base(g.array))
        laid.node, laid.tracked = (_step(registry["copy"], {}, g, ((g.array.shape, g.array.dtype),)), True) if g.tracked else (None, False)
        value = ops.copy(replay(self.path, laid)) if needs[1] else None
        if needs[0]:
            overwrite(replay(self.path, laid), 0.0, "zero_")
        return (laid if needs[0] else None), value


def write_out(out: Tensor, value: Any, name: str) -> Tensor:
    """Store a result in `out=`: resized with a warning when its shape differs. Raises GradError inside a graph."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out is a {type(out).__name__}, not a tensor")
    if state.enabled and (out.tracked or value.tracked):
        raise GradError(f"{name}: out= does not record gradients; call it under no_grad(), or use the result that {name} returns")
    if out.array.shape != value.array.shape:
        if out.array.size:
            warnings.warn(
                f"{name}: out has shape {tuple(out.array.shape)} and was resized to {tuple(value.array.shape)}; "
                "give an out of the result's shape, or an empty one",
                stacklevel=3,
            )
        value = _castable(out, value, name)
        _resize(out, value)
        _bump(out, name)
        return out
    return overwrite(out, value, name)


def _castable(out: Tensor, value: Tensor, name: str) -> Tensor:
    like = new_tensor(empty(value.array.shape, out.array.dtype, out.device))
    return _fitted(like, value, name)


def _resize(out: Tensor, value: Tensor) -> None:
    """Give out memory of value's shape; views of the old memory keep the old memory."""
    out.array = engine.copy(value.array)
