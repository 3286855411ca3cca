"""In-place writes: memory first, then the graph, for tensors, their bases and their views."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.autograd import engine
from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, Version, version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground import dtypes
from tritensor.ground.call_site import warn
from tritensor.ground.errors import DeviceError, DTypeError, GradError, ShapeError
from tritensor.ground.providers import provider
from tritensor.ground.strides import contiguous_strides
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray, transform
from tritensor.ops.array import CudaArray, device_of, empty, same_memory
from tritensor.ops.lazy_array import LazyArray, leave_before_change, run_before_write
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import Op, Spec, ops, registry
from tritensor.tensor.aliasing.overlaps import elements_agree, has_own_cells, refuse_overlap, write_changed
from tritensor.tensor.aliasing.resizing import needs_own_memory, resize_memory
from tritensor.tensor.aliasing.views import copy_into, is_write_recorded, leave_base, rebase_history, refuse_write
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.parsing.data import as_tensor

_ELSEWHERE = (WrappedArray, MetaArray, LazyArray)  # arrays that are not memory to write to


def compute_into(name: str, target: Tensor, operands: tuple[Any, ...], who: str) -> bool:
    """Compute the op `name` of operands directly into target's memory, which may be the first operand's: one pass, nothing allocated.

    Returns False, having done nothing, where that is not what `overwrite` would come to: a graph remembers the old contents, types or
    shapes have to be fitted, or memory is shared in part.
    """
    op = _direct_op(name, len(operands))
    a = target._array
    if here.segment is not None:
        return False
    # Floats only: integers would need the checks of promotion that `overwrite` makes.
    if op is None or type(a) in _ELSEWHERE or is_write_recorded(target) or dtypes.of(a.dtype).kind != "float" or not has_own_cells(a):
        return False
    given: list[Any] = []
    whole = False
    for y in operands:
        # Beyond 2^53 an int is not exact as float64, which kernels take numbers in.
        if type(y) is float or (type(y) is int and abs(y) < 2**53):
            given.append(y)
            continue
        if not isinstance(y, Tensor) or (y._tracked and state.enabled):
            return False
        b = y._array
        # Reading memory that is being written is safe only where each element is read before it is written: for the target itself.
        if type(b) is not type(a) or b.dtype != a.dtype or (b is not a and (device_of(b) != device_of(a) or same_memory(a, b))):
            return False
        if b.shape != a.shape and not broadcasts_to(b.shape, a.shape):
            return False
        whole = whole or b.shape == a.shape
        given.append(b)
    # All operands smaller than the target: the result would have their shape, and `overwrite` broadcasts it.
    if not whole:
        return False
    run: Any = op.forward if isinstance(a, CudaArray) else op.cpu
    if not isinstance(a, CudaArray) and not isinstance(getattr(run, "bare", run), np.ufunc):
        return False  # a formula of several steps would read what its first step has overwritten
    run_before_write(a)
    # Memory that was lent to saved values of the graph is given its own copy before it changes.
    if (version := target._version_counter) is not None and version.borrowers is not None:
        copy_for_borrowers(target)
    try:
        run(*given, out=a)
    except RuntimeWarning:  # a ufunc looks for these when all is written
        if isinstance(a, CudaArray):
            raise
    version_of(target).bump(who)
    if here.noting is not None:
        here.noting.note_write(op, getattr(run, "bare", run), target, operands, given, who)
    return True


def _takes_floats(op: Op) -> bool:
    """Whether the shape rule lets floating tensors through."""
    try:
        op.shape(*[Spec((), np.dtype(np.float32))] * len(op.inputs))
    except DTypeError:
        return False
    return True


@functools.cache
def _direct_op(name: str, count: int) -> Op | None:
    """The elementwise op of that name and number of inputs, if it gives floating results of its inputs' type."""
    op = registry.get(name)
    if op is None or not op.into or op.attrs or len(op.inputs) != count or not _takes_floats(op):
        return None
    probe = Spec((), np.dtype(np.float32))
    return op if op.shape(*[probe] * count).dtype == probe.dtype else None


registry.changed.append(lambda op: _direct_op.cache_clear())


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to exactly `target`."""
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(reversed(shape), reversed(target), strict=False))


def _fill_directly(x: Tensor, value: Any, name: str) -> bool:
    """Write a number directly over floating contents that no graph remembers; False, having done nothing, where that cannot be."""
    a = x._array
    # bool and complex need the cast that `overwrite` makes.
    if (type(value) is not float and type(value) is not int) or type(a) in _ELSEWHERE:
        return False
    if is_write_recorded(x) or dtypes.of(a.dtype).kind != "float" or not has_own_cells(a) or here.segment is not None:
        return False
    run_before_write(a)
    full = registry["full"]
    copy_for_borrowers(x)
    if isinstance(a, CudaArray):
        assert full.forward is not None
        full.forward(shape=a.shape, value=value, dtype=a.dtype, device=a.storage.device, out=a)
    else:
        full.cpu(shape=a.shape, value=value, dtype=a.dtype, device=x.device, out=a)
    version_of(x).bump(name)
    return True


def overwrite(
    x: Tensor, value: Any, name: str, since: int | None = None, beside: tuple[Tensor, ...] = (), one_value: bool = False
) -> Tensor:
    """Make `value` (a tensor that broadcasts to x, or a number) the contents of x, in memory and in the graph.

    `since`, a number drawn before the value was computed for this very write: its nodes, which have higher ones, keep a copy of what they
    saved of x, and x takes the value's own place in the graph. Without it the value is somebody's, and only its own node keeps such a copy.
    `beside`, what was computed together with the value and may have saved x as well: the value's tangents.
    `one_value`: the elements that change all get the same one, so that those that share a cell agree (see overlaps.py).

    Raises GradError for a leaf that requires grad and for a view that cannot be written, ShapeError and DTypeError for a value that
    does not fit, ShapeError for a tensor whose elements share cells, unless they agree on what is written and no graph remembers it.
    """
    if not isinstance(value, Tensor) and _fill_directly(x, value, name):
        return x
    a, given = x._array, value
    b = value._array if isinstance(value, Tensor) else None
    # The usual case (one type, one shape, CPU) skips four function calls.
    if type(b) is not np.ndarray or type(a) is not np.ndarray or b.dtype != a.dtype or b.shape != a.shape:
        value = _fit_value(x, value, name)
    if type(value._array) is WrappedArray:
        # A plain tensor that takes a wrapped value becomes part of the transform, or is refused there.
        transform.current.adopt(x, value, name)
    recorded = state.enabled and (value._tracked or is_write_recorded(x))
    if recorded:
        refuse_write(x, name)
    shared = not has_own_cells(x._array)
    # A recorded write has one gradient per element, but shared cells have one value: no rule covers that.
    if shared and (recorded or not elements_agree(x, name, given, one_value)):
        refuse_overlap(x, name)
    copy_for_borrowers(x)
    if shared:
        write_changed(x, value)
        version_of(x).bump(name)
        return x
    node = value._node
    # Each level of a transform has a graph of its own; all of them may have saved x.
    if type(value._array) is WrappedArray or beside:
        for n in dict.fromkeys([n for y in (value, *beside) for n in _all_nodes(y)]):
            _copy_saved(x, n, n.sequence - 1 if since is None else since)
    elif node is not None:
        _copy_saved(x, node, node.sequence - 1 if since is None else since)
    if WrappedArray in (type(x._array), type(value._array)):
        transform.current.write(x._array, value, name, since, beside)
    elif here.segment is not None or LazyArray in (type(x._array), type(value._array)):
        a = b = None  # it counts who holds the memory
        provider("lazy_evaluation.recording").write(x, value)
    else:
        copy_into(a, value._array)
    version_of(x).bump(name)
    if recorded:
        rebase_history(x, value, name, since is not None and node is not None and node.sequence > since)
    return x


def _copy_saved(x: Tensor, node: Node, since: int) -> None:
    """`x.mul_(y)` needs the old x for y's gradient: give the nodes that computed the new contents a copy of what they saved of x's memory.

    Only where the contents of now are those that the node saved; if not, the node's own check refuses later.
    """
    version = x._version_counter
    written = 0 if version is None else version.stamp
    copies: dict[int, Tensor] = {}
    stack = [node]
    seen = set()
    while stack:
        n = stack.pop()
        # Nodes made before the write saved the old contents on purpose: their own check must refuse.
        if n.sequence <= since or n in seen:
            continue
        seen.add(n)
        for e in n.edges:
            if isinstance(e, Node):
                stack.append(e)
        if n.inputs and n.sequence > written:
            for s in n.inputs:
                if s is x or _shares_counter(version, s):
                    n.inputs = tuple([_copy_saved_tensor(s, copies) if s is x or _shares_counter(version, s) else s for s in n.inputs])
                    break


def _all_nodes(y: Tensor) -> list[Node]:
    """Where a tensor hangs in the graphs of all levels: its own, and those of its value and its tangent below a transform."""
    found = [] if y._node is None else [y._node]
    if type(a := y._array) is WrappedArray:
        found += _all_nodes(a.value) if a.tangent is None else _all_nodes(a.value) + _all_nodes(a.tangent)
    return found


def _shares_counter(version: Version | None, s: Any) -> bool:
    """Whether a saved tensor looks at the memory whose writes a counter counts."""
    return version is not None and getattr(s, "_version_counter", None) is version


def _copy_saved_tensor(s: Tensor, copies: dict[int, Tensor]) -> Tensor:
    """A copy of s with s's place in the graph, the same for every node that saved s."""
    if id(s) not in copies:
        copies[id(s)] = old = new_tensor(engine.copy(s._array))
        old._node, old._tracked = s._node, s._tracked
    return copies[id(s)]


def _fit_value(x: Tensor, value: Any, name: str) -> Tensor:
    """The value as a tensor of x's shape, dtype and device."""
    if not isinstance(value, Tensor):
        value = (
            ops.full(shape=tuple(x._array.shape), value=value, dtype=x._array.dtype, device=x.device)
            if isinstance(value, bool | int | float | complex | np.generic) and not isinstance(value, np.character)
            else as_tensor(value, x, name)
        )
    if value.device != x.device:
        raise DeviceError(f"{name}: the tensor is on {x.device}, the value on {value.device}; move the value with .to({str(x.device)!r})")
    if value._array.dtype != x._array.dtype:
        have, want = dtypes.of(value._array.dtype), x.dtype
        # PyTorch's rule of result types in place: the kind may rise into the target's, never fall.
        rank = {"bool": 0, "uint": 1, "int": 1, "float": 2, "float8": 2, "complex": 3}
        if rank[have.kind] > rank[want.kind]:
            raise DTypeError(
                f"{name}: the result is {have.name} and does not fit into {want.name}, to which it can't be cast in place; use the "
                "out-of-place form, or convert with .to(...)"
            )
        value = ops.cast(value, dtype=x._array.dtype)
    if value._array.shape != x._array.shape:
        # x[i] = value takes leading sizes of 1, as numpy does; x.add_(value) does not.
        lead = value._array.shape[: max(value.ndim - x.ndim, 0)]
        stretched = value._array.shape[len(lead) :]
        if (
            (lead and name != "setitem")
            or any(n != 1 for n in lead)
            or any(m not in (1, n) for m, n in zip(reversed(stretched), reversed(x._array.shape), strict=False))
        ):
            raise ShapeError(
                f"{name}: a result of shape {value._array.shape} does not fit into {x._array.shape}; use the out-of-place form"
            )
        if lead:
            value = ops.reshape(value, shape=stretched)
        value = ops.expand(value, shape=tuple(x._array.shape))
    return value


def write_out(out: Tensor, value: Any, name: str) -> Tensor:
    """Store a result in `out=`: resized with a warning when its shape differs. Raises GradError inside a graph."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out is a {type(out).__name__}, not a tensor; give a tensor to write to")
    # PyTorch refuses out= in a graph: the write would be recorded nowhere.
    if state.enabled and (out._tracked or value._tracked):
        raise GradError(f"{name}: out= does not record gradients; call it under no_grad(), or use the result that {name} returns")
    if out._array.shape != value._array.shape:
        # Resizing an empty out is the documented use, and needs no warning.
        if out._array.size:
            warn(
                f"{name}: out has shape {tuple(out._array.shape)} and was resized to {tuple(value._array.shape)}; "
                "give an out of the result's shape, or an empty one"
            )
        resize(out, value, name)
        return out
    return overwrite(out, value, name)


def resize(x: Tensor, value: Tensor, name: str) -> None:
    """Make `value` the contents of x and its shape x's, in x's memory; x keeps its type. Raises ShapeError where elements of x share cells."""
    fitted = _fit_type(x, value, name)
    leave_before_change(x)
    if type(x._array) is WrappedArray or type(fitted._array) is WrappedArray:
        leave_base(x)
        x._set_array(engine.copy(fitted._array))
    # Nobody shares x's memory: replacing it is cheaper than moving everybody.
    elif needs_own_memory(x, fitted._array.size):
        copy_for_borrowers(x)
        x._set_array(engine.copy(fitted._array))
    else:
        refuse_overlap(x, name)
        source = engine.copy(fitted._array) if same_memory(x._array, fitted._array) else fitted._array
        copy_for_borrowers(x)
        resize_memory(x, tuple(source.shape), contiguous_strides(tuple(source.shape)))
        copy_into(x._array, source)
    version_of(x).bump(name)


def _fit_type(out: Tensor, value: Tensor, name: str) -> Tensor:
    like = new_tensor(empty(value._array.shape, out._array.dtype, out.device))
    return _fit_value(like, value, name)
