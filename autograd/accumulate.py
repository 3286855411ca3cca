"""Gradients on their way: of slices, put together once all have come; complete ones, with the hooks that look at them and the leaf that adds them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd.hooks import Hooks
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.node import Version, as_array
from tritensor.ground.errors import GradError, ShapeError
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.process import locks
from tritensor.ground.providers import provider
from tritensor.ground.strides import is_dense, lie_alike
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, CudaArray, device_of, element_strides, empty, is_contiguous
from tritensor.ops.lazy_array import LazyArray, run_before_write
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import ops, registry

_BY_OPS = (WrappedArray, MetaArray, LazyArray)  # arrays that only ops compute with
# Reading, adding and storing .grad is one step: two threads may bring the gradients of one leaf at once.
_accumulating = locks.lock()


def zero_gradient(leaf: Any) -> None:
    """Take a gradient, where there is one, out of the graph and fill it with zeros; it stays the same tensor, which a program may hold."""
    g = leaf.grad
    if g is not None:
        # One of create_graph hangs in a graph, which would record or refuse the zeros.
        g.requires_grad_(False) if g.is_leaf else g.detach_()
        g.zero_()


def add_arrays(a: Array, b: Array) -> Array:
    if type(a) is MetaArray:
        return a
    if type(a) is LazyArray or type(b) is LazyArray:
        return ops.add(nodes.make_tensor(a), nodes.make_tensor(b))._array
    return registry["add"].forward(a, b) if type(a) is CudaArray else add_numbers(a, b)  # type: ignore[misc]


def add_numbers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b on the CPU, in which infinities and NaN go without a warning."""
    try:
        return np.add(a, b)
    except RuntimeWarning:
        return quietly(np.add, a, b)


def _add_in_place(a: np.ndarray, b: np.ndarray) -> None:
    """a += b, in the same way."""
    try:
        np.add(a, b, out=a)
    except RuntimeWarning:  # numpy looks for infinities and NaN when it has added all: to add once more would be wrong
        return


def copy(x: Array) -> Array:
    """A C-ordered copy."""
    if type(x) in _BY_OPS:
        return ops.copy(nodes.make_tensor(x))._array
    return registry["copy"].forward(x) if isinstance(x, CudaArray) else np.array(x, order="C")  # type: ignore[misc]


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: sum a gradient (array or Tensor) over the axes along which `shape` was stretched."""
    lead = len(g.shape) - len(shape)
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1))
    if isinstance(g, CudaArray):
        g = registry["sum"].forward(g, dim=axes, keepdim=True) if axes else g  # type: ignore[misc]
        return g.reshape(shape)
    if isinstance(g, np.ndarray | np.generic):
        if axes:
            try:
                g = registry["sum"].cpu(g, dim=axes, keepdim=True)
            except RuntimeWarning:
                g = quietly(registry["sum"].cpu, g, dim=axes, keepdim=True)
        return g.reshape(shape)
    if type(g) in _BY_OPS:
        return sum_to(nodes.make_tensor(g), shape)._array
    g = ops.sum(g, dim=axes, keepdim=True) if axes else g
    return ops.reshape(g, shape=shape) if lead else g


def _has_leaf_layout(g: Array, leaf: Array) -> bool:
    """True where a gradient lies as PyTorch lays that of a leaf: as the leaf itself where that is without gaps and repeats, else in C order."""
    if is_contiguous(leaf) or not is_dense(leaf.shape, element_strides(leaf)):
        return is_contiguous(g)
    return lie_alike(g.shape, element_strides(g), element_strides(leaf))


def copy_in_layout(g: Array, leaf: Array) -> Array:
    """A copy that lies so."""
    strides = element_strides(leaf)
    if type(g) is LazyArray:
        return provider("lazy_evaluation.recording").laid(g, strides if is_dense(leaf.shape, strides) else None)
    # Gaps and repeats of a leaf are not its gradient's.
    out = empty(g.shape, g.dtype, device_of(g), strides if is_dense(leaf.shape, strides) else None)
    if isinstance(out, np.ndarray):
        np.copyto(out, g)
    elif type(out) is CudaArray:
        registry["copy"].forward(g, out=out)  # type: ignore[misc]
    return out


def _copy_recorded(g: Any, leaf: Array) -> Any:
    """A gradient that can be differentiated, as a tensor of its own memory that lies so: the next one is added to it in place."""
    if type(g._array) is WrappedArray:
        return ops.copy(g)
    array = copy_in_layout(g._array, leaf)
    if not g._tracked:
        return nodes.make_tensor(array)
    return nodes.make_output(array, nodes.Node(registry["copy"], (g._node or g,), None, None, {}, ((g._array.shape, g._array.dtype),)))


def make_shape_error(leaf: Any, g: Array) -> ShapeError:
    return ShapeError(
        f"backward: a gradient of shape {tuple(g.shape)} for a leaf of shape {tuple(leaf._array.shape)}, which changed its shape in place "
        "after it was used; compute the loss again"
    )


def accumulate(leaf: Any, g: Any, own: bool, create_graph: bool) -> None:
    """leaf.grad += g, in place where there is one, keeping g's memory itself where it is nobody else's and lies as the leaf does."""
    with _accumulating:
        held = leaf._grad
        if create_graph:
            # Not in place: a graph may have saved the old gradient.
            leaf._grad = _copy_recorded(g, leaf._array) if held is None else ops.add(held, g)
            return
        g = as_array(g)
        if g.shape != leaf._array.shape:
            raise make_shape_error(leaf, g)
        if (type(g) is WrappedArray and g.instance is not None) or (held is not None and type(held._array) is WrappedArray):
            given = nodes.make_tensor(g if own else copy(g))
            leaf._grad = given if held is None else ops.add(held, given)
        elif held is None:
            if type(g) is LazyArray:
                laid = state.lays_gradients or not is_dense(g.shape, g.strides)
                leaf._grad = nodes.make_tensor(copy_in_layout(g, leaf._array if laid else g))
                return
            lies = _has_leaf_layout(g, leaf._array) or (not state.lays_gradients and is_dense(g.shape, element_strides(g)))
            if not own or (isinstance(g, np.ndarray) and g.base is not None) or not lies:  # a window would keep all of its base alive
                g = copy_in_layout(g, leaf._array)
            leaf._grad = nodes.make_tensor(g)
        elif 0 in held._array.strides:  # expanded by hand: several elements share one cell
            leaf._grad = nodes.make_tensor(add_arrays(held._array, g))
        else:
            if type(g) is LazyArray or type(held._array) is LazyArray:
                provider("lazy_evaluation.recording").write(held, nodes.make_tensor(add_arrays(held._array, g)))
            elif isinstance(g, CudaArray):
                run_before_write(held._array)
                registry["add"].forward(held._array, g, out=held._array)  # type: ignore[misc]
            elif type(g) is not MetaArray:
                run_before_write(held._array)
                _add_in_place(held._array, g)
            if held._version_counter is None:
                held._version_counter = Version()
            held._version_counter.bump("backward")  # a graph may have saved the gradient


def call_hooks(hooks: Hooks, g: Any, tensors: bool) -> Any:
    """Run tensor hooks over a gradient, an array or a tensor; what one returns replaces it. What comes out is kept where it is asked for.

    A hook that is removed or added while they run is so from the next gradient on.
    """
    if not hooks.tensor and not hooks.keepers:
        return g
    t = g if tensors else nodes.make_tensor(as_array(g))
    with enable_grad() if tensors else no_grad():
        for hook in tuple(hooks.tensor.values()):  # a copy: a hook may remove itself
            got = hook(t)
            if got is not None:
                _check_gradient(got, t)
                t = got
        for keeper in hooks.keepers:
            tensor = keeper()
            if tensor is not None:
                # t goes on through the walk, and .grad is the user's to write.
                tensor._grad = ops.copy(t) if tensor._grad is None else ops.add(tensor._grad, t)
    return t if tensors else t._array


def _check_gradient(got: Any, t: Any) -> None:
    if not hasattr(got, "_array"):
        raise TypeError(f"hook: returned a {type(got).__name__} in place of a gradient; return a tensor, or None to leave it as it is")
    if got._array.shape != t._array.shape:
        raise ShapeError(f"hook: returned a gradient of shape {tuple(got._array.shape)} in place of {tuple(t._array.shape)}")
    if got._array.dtype != t._array.dtype:
        raise GradError(f"hook: returned a gradient of {got.dtype.name} in place of {t.dtype.name}; convert it with .to(...)")


def call_prehooks(hooks: Hooks, g: Any, tensors: bool) -> Any:
    """Run a node's pre-hooks over the gradients of its outputs, `hook(grad_outputs)`. None where they leave no gradient."""
    given = g if type(g) is tuple else (g,)
    wrapped = _wrap_gradients(given, tensors)
    with enable_grad() if tensors else no_grad():
        for hook in tuple(hooks.before.values()):
            got = hook(wrapped)
            if got is not None:
                wrapped = _check_replacements(got, wrapped, "prehook")
    if all(t is None for t in wrapped):  # the node is not pulled then, as in PyTorch
        return None
    out = wrapped if tensors else tuple([None if t is None else t._array for t in wrapped])
    return out if type(g) is tuple else out[0]


def call_posthooks(hooks: Hooks, found: tuple[Any, ...], g: Any, tensors: bool) -> tuple[Any, ...]:
    """Run a node's hooks over the gradients of its inputs, `hook(grad_inputs, grad_outputs)`."""
    above = _wrap_gradients(g if type(g) is tuple else (g,), tensors)
    wrapped = _wrap_gradients(found, tensors)
    with enable_grad() if tensors else no_grad():
        for hook in tuple(hooks.after.values()):
            got = hook(wrapped, above)
            if got is not None:
                wrapped = _check_replacements(got, wrapped, "hook")
    return wrapped if tensors else tuple([None if t is None else t._array for t in wrapped])


def _wrap_gradients(given: tuple[Any, ...], tensors: bool) -> tuple[Any, ...]:
    return given if tensors else nodes.wrap_gradient(given)  # type: ignore[no-any-return]


def _check_replacements(got: Any, before: tuple[Any, ...], who: str) -> tuple[Any, ...]:
    """The gradients that a node's hook returned, checked against what it was given."""
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != len(before):
        raise GradError(f"{who}: returned {len(got)} gradients in place of {len(before)}; return one for each, None where there is none")
    for new, old in zip(got, before, strict=True):
        if new is not None and old is not None:
            _check_gradient(new, old)
    return got


# Gradients of slices
TAKEN = "index_view"  # the op of basic indexing, by which split, chunk, unbind and a loop over a tensor take it apart
_ALL = slice(None)


class Slices:
    """A gradient that is not yet whole: those of slices of a tensor of `shape`, each with its index, and what came for the tensor as such.

    Putting n slices together moves what they hold once; padding each would move the whole tensor n times. PyTorch does the same for split
    and unbind (one node with several outputs) and pads what a loop takes by x[i]; here they are alike.
    """

    __slots__ = ("parts", "rest", "shape")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.parts: list[tuple[tuple[Any, ...], Any]] = []
        self.rest: Any = None

    def plus(self, x: Any, add: Callable[[Any, Any], Any]) -> Slices:
        """x, of the tensor's shape, has come as well."""
        self.rest = x if self.rest is None else add(self.rest, x)
        return self

    def whole(self, add: Callable[[Any, Any], Any]) -> Any:
        """The gradient of the tensor: an array, or a tensor where the parts are tensors (the graph is recorded)."""
        tensors = hasattr(self.parts[0][1], "_array")
        if not tensors and any([type(g) in (WrappedArray, LazyArray) for _, g in self.parts]):  # which have no memory to put slices into
            made = Slices(self.shape)
            made.parts = [(index, nodes.make_tensor(as_array(g))) for index, g in self.parts]
            with no_grad():
                found = made.whole(ops.add)._array
            return found if self.rest is None else add(found, self.rest)
        joined = _plan_joining(self.shape, self.parts)
        if joined is not None:
            name, parts, dim = joined
            found = getattr(ops, name)(*parts, dim=dim) if tensors else _run_op(name, parts, dim=dim)
        elif tensors:
            padded = [ops.pad_view(g, shape=self.shape, index=index) for index, g in self.parts]
            found = padded[0]
            for one in padded[1:]:
                found = add(found, one)
        else:
            found = _sum_slices(self.shape, self.parts)
        return found if self.rest is None else add(found, self.rest)


def add_slice(
    pending: dict[Any, Any], edge: Any, shape: tuple[int, ...], index: tuple[Any, ...], g: Any, add: Callable[[Any, Any], Any]
) -> None:
    """The gradient g of x[index] has come for `edge`, the place of x."""
    at = pending.get(edge)
    if type(at) is not Slices:
        made = Slices(shape)
        pending[edge] = made if at is None else made.plus(at, add)
        at = made
    at.parts.append((index, g))


def _run_op(name: str, parts: list[Any], **attrs: Any) -> Any:
    op = registry[name]
    if type(parts[0]) is MetaArray:
        return getattr(ops, name)(*[nodes.make_tensor(x) for x in parts], **attrs)._array
    return (op.forward if type(parts[0]) is CudaArray else op.cpu)(*parts, **attrs)  # type: ignore[misc]


def _plan_joining(shape: tuple[int, ...], parts: list[tuple[tuple[Any, ...], Any]]) -> tuple[str, list[Any], int] | None:
    """(cat or stack, the parts in order, dim) where they are neighbours along one dimension and fill it; None where they are anything else."""
    dim = len(parts[0][0]) - 1
    if dim < 0 or len(parts) < 2:
        return None
    lead = (_ALL,) * dim
    places = []
    for index, g in parts:
        if len(index) != dim + 1 or index[:dim] != lead:
            return None
        last = index[dim]
        if isinstance(last, slice):
            start, stop, step = last.indices(shape[dim])
            if step != 1:
                return None
            places.append((start, max(start, stop), g))  # an empty slice may stop before it starts
        elif last is None:  # x[None] adds a dimension: no part of one that is there
            return None
        else:
            start = last + shape[dim] if last < 0 else last
            places.append((start, start + 1, g))
    sliced = [isinstance(index[dim], slice) for index, _ in parts]
    if any(sliced) and not all(sliced):  # slices keep the dimension and ints drop it: neither cat nor stack joins both
        return None
    places = sorted((p for p in places if p[0] < p[1]), key=lambda p: p[0])
    edges = [0, *(stop for _, stop, _ in places)]
    if not places or edges[-1] != shape[dim] or any(start != edge for (start, _, _), edge in zip(places, edges, strict=False)):
        return None
    return "cat" if sliced[0] else "stack", [g for _, _, g in places], dim


def _sum_slices(shape: tuple[int, ...], parts: list[tuple[tuple[Any, ...], Any]]) -> Any:
    """Zeros, and every slice's gradient added where it was taken."""
    (index, g), *others = parts
    if type(g) is MetaArray:
        return empty(shape, g.dtype, g.device)
    if type(g) is not CudaArray:
        found = np.zeros(shape, g.dtype)
        found[index] = g
        for index, g in others:
            found[index] += g
        return found
    fill, copy, add = (registry[name].forward for name in ("full", "copy", "add"))
    on_device: Any = fill(shape=shape, value=0, dtype=g.dtype, device=g.device)  # type: ignore[misc]
    copy(g, out=on_device[index])  # type: ignore[misc]
    for index, g in others:
        if g.size:
            place = on_device[index]
            add(place, g, out=place)  # type: ignore[misc]
    return on_device
