"""Graph nodes: what an op leaves behind so that its gradient can be computed later."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from tritensor.autograd.hooks import Handle, Hooks, hooks_of
from tritensor.autograd.modes import enable_grad, no_grad
from tritensor.autograd.names import SavedValue, name_of, shown
from tritensor.ground import dtypes
from tritensor.ground.errors import GradError
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.process import locks
from tritensor.ground.providers import provider
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, CudaArray
from tritensor.ops.lazy_array import LazyArray
from tritensor.ops.strided_array import MetaArray, StridedArray
from tritensor.ops.table import Op, Partials, ops

next_sequence = count(1).__next__


def _refuse_unloaded(*_: Any) -> Any:
    raise GradError("autograd: the tensor floor is not loaded; import tritensor")


# What this floor needs of the tensors' floor above, which it must not import: tritensor.tensor.core and tritensor.tensor.aliasing.views put it here.
make_tensor: Callable[[Array], Any] = _refuse_unloaded  # a leaf Tensor on an array
make_output: Callable[[Array, Any], Any] = _refuse_unloaded  # a Tensor that hangs at a node
view_of: Callable[[Any], Any] = _refuse_unloaded  # the same memory as another tensor, a view that must not be written in the graph
refuse_dirty: Callable[[Any, str], None] = (
    _refuse_unloaded  # GradError for a tensor in the graph that cannot be written, but a Function wrote
)
hang_written: Callable[[Any, Any, str], None] = (
    _refuse_unloaded  # a tensor that a Function wrote, its base and its views, at the Function's node
)
hang_result: Callable[[Any, Any, bool], Any] = _refuse_unloaded  # what a Function made, at its node


class _Latest:
    """`stamp`: that of the latest write anywhere, or of what was cut off its graph. A node younger than that needs no check."""

    # no attribute of a class: at a write to one Python forgets where the attributes of all its objects are
    __slots__ = ("stamp",)

    def __init__(self) -> None:
        self.stamp = 0


latest = _Latest()


class Version:
    """The count of writes: how often the memory of a tensor and its views has been written in place, when and by which op last.

    `stamp` is drawn from the counter that numbers the nodes: a node older than the stamp saved what is gone now. loose: whether it counts more than
    the writes to one piece of memory, as one of these tensors has come to look elsewhere (`.data =`), or otherwise (`t_`), or the user counts.
    """

    __slots__ = ("borrowers", "loose", "stamp", "value", "writer")

    def __init__(self) -> None:
        self.value = self.stamp = 0
        self.writer = ""
        self.loose = False
        self.borrowers: list[tuple[weakref.ref[Node], int]] | None = None  # nodes that get a copy before the next write: see saved.py

    def bump_loosely(self, writer: str) -> None:
        """Count what is no write to the memory, but ends what was saved as one does."""
        self.loose = True
        self.bump(writer)

    def bump(self, writer: str) -> None:
        self.value += 1
        self.writer = writer
        self.stamp = stamp = next_sequence()
        if stamp > latest.stamp:  # another thread may have written since
            latest.stamp = stamp


_making = locks.lock()


def version_of(t: Any) -> Version:
    """The write counter of a tensor, made at its first use; two threads that ask first at once get one."""
    version: Version | None = t._version_counter
    if version is None:
        with _making:
            version = t._version_counter
            if version is None:
                version = t._version_counter = Version()
    return version


class Node:
    """One recorded op. `edges` holds, per input, where its gradient goes: a Node, a leaf tensor, or None.

    Nodes are numbered as they are made, and an edge always leads to a smaller number: sorting by number is a
    topological order. `inputs` are the saved input tensors (None where not asked for), `outputs` the saved output
    arrays with their Version: an array and not the tensor, because tensor -> node -> tensor would be a cycle.
    """

    __slots__ = ("__weakref__", "attrs", "edges", "flat", "hooks", "inputs", "meta", "op", "outputs", "sequence")
    flat: tuple[Any, ...]  # of a flat op's gradient: see autograd/task.py

    def __init__(
        self, op: Any, edges: tuple[Any, ...], inputs: tuple[Any, ...] | None, outputs: tuple[Any, ...] | None,
        attrs: dict[str, Any] | None, meta: tuple[Any, ...] | None,
    ) -> None:  # fmt: skip
        self.op = op
        self.edges = edges
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.meta = meta  # (shape, dtype) of every input, where asked for
        self.sequence = next_sequence()
        self.hooks: Hooks | None = None

    def name(self) -> str:
        """The name shown by `grad_fn`, such as MulBackward0."""
        return name_of(self)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that this node's gradients go to, each with the number of its output."""
        return tuple(next_function(e) for e in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary of one's own notes on this node; anomaly mode keeps the forward call's lines in it."""
        return notes.setdefault(self, {})

    def _sequence_nr(self) -> int:
        return self.sequence

    def saved(self) -> list[tuple[str, Any]]:
        """What the node keeps for its gradient, by PyTorch's names: tensors and attributes. Raises GradError once the graph was freed."""
        if self.inputs is FREED or self.outputs is FREED:
            raise self._freed()
        return [*[(name, self._saved(kind, i, (), True)) for name, kind, i in self._kept()], *(self.attrs or {}).items()]

    def _kept(self) -> list[tuple[str, str, int]]:
        """The tensors that the node keeps: PyTorch's name of each, whether it is an input or an output, which one."""
        kept = [("input", i) for i, x in enumerate(self.inputs or ()) if x is not None]
        kept += [("output", i) for i, y in enumerate(self.outputs or ()) if y is not None]
        names = {"input": self.op.inputs, "output": self.op.outputs}
        found = []
        for kind, i in kept:
            known = names[kind]
            name = known[i] if i < len(known) else f"{known[-1]}{i - len(known) + 1}"
            found.append((_SHOWN.get(name, name), kind, i))
        return found

    def __dir__(self) -> list[str]:
        """Attributes that there are: of `_saved_...`, those of this node."""
        here = {"_saved_" + name for name in (*[name for name, _, _ in self._kept()], *(self.attrs or ()))}
        return [name for name in object.__dir__(self) if not name.startswith("_saved_") or name in here]

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> Handle:
        """Call `fn(grad_inputs, grad_outputs)`, two tuples, when this node has run; a returned tuple replaces grad_inputs."""
        return Handle(hooks_of(self).after, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> Handle:
        """Call `fn(grad_outputs)`, a tuple, before this node runs; a returned tuple replaces it."""
        return Handle(hooks_of(self).before, fn)

    def free(self) -> None:
        """Let go of what was saved; a later backward through this node raises."""
        if self.inputs is not None or self.outputs is not None:
            self.inputs = self.outputs = FREED

    # gradients
    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Gradients of the inputs on bare arrays: the backward kernel, its numpy twin, or the rule without recording."""
        op: Op = self.op
        kind = _kind(g)
        if kind is LazyArray:
            return provider("lazy_evaluation.recording").pull(self, g, needs)  # type: ignore[no-any-return]
        if kind is MetaArray and self.meta is not None:
            return provider("dispatch.meta").gradients(op, self.meta, needs)  # type: ignore[no-any-return]
        # A transform sees the steps of the rule, and no kernel's.
        corner = op.backward if kind is CudaArray else None if kind is WrappedArray else op.cpu_backward
        if corner is None:
            corner = op.rule
            assert corner is not None, "a node is made of differentiable ops only"
            with no_grad():
                found = self._call(corner, wrap_gradient(g), needs, True)
            return tuple(getattr(x, "_array", x) for x in found)
        try:
            return self._call(corner, g, needs, False)
        except RuntimeWarning:
            return quietly(self._call, corner, g, needs, False)  # type: ignore[no-any-return]

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Gradients of the inputs as tensors, the rule run op by op and recorded: differentiable again."""
        with enable_grad():
            return self._call(self.op.rule, g, needs, True)

    def _call(self, corner: Partials, g: Any, needs: tuple[bool, ...], tensors: bool) -> tuple[Any, ...]:
        if corner.joint:
            _, function, fetch, _ = corner.steps[0]
            out = function(g, *[self._saved(kind, k, needs, tensors) for kind, k in fetch])
            return out if type(out) is tuple else (out,)
        found = []
        for (_, function, fetch, _), need in zip(corner.steps, needs, strict=False):
            if need and function is not None:
                found.append(function(g, *[self._saved(kind, k, needs, tensors) for kind, k in fetch]) if fetch else function(g))
            else:
                found.append(None)
        return tuple(found)

    def saved_values(self, fetch: tuple[tuple[str, Any], ...], needs: tuple[bool, ...]) -> list[Any]:
        """Several saved values as arrays, for a gradient on arrays. Raises GradError as `_saved` does."""
        inputs, outputs = self.inputs, self.outputs
        if inputs is FREED or outputs is FREED or self.sequence <= latest.stamp:
            return [self._saved(kind, k, needs, False) for kind, k in fetch]
        # Nothing anywhere was written or cut off since this node was made: what it saved is as it was.
        found = []
        for kind, k in fetch:
            if kind == "input":
                x = None if inputs is None else inputs[k]
                found.append(getattr(x, "_array", x))
            elif kind == "output":
                found.append(None if outputs is None or (held := outputs[k]) is None else held[0])
            elif kind == "attr":
                attrs = self.attrs
                found.append(attrs[k] if attrs and k in attrs else self.op.attrs[k])
            elif kind == "shape":
                meta = self.meta[k]  # type: ignore[index]
                found.append(None if meta is None else meta[0])
            elif kind == "needs":
                found.append(needs)
            else:
                found.append(self._saved(kind, k, needs, False))
        return found

    def _saved(self, kind: str, k: Any, needs: tuple[bool, ...], tensors: bool) -> Any:
        """One saved value by (kind, place), checked for in-place writes; arrays, or tensors where the rule runs."""
        if kind == "input":
            inputs = self.inputs
            if inputs is FREED:
                raise self._freed()
            x = None if inputs is None else inputs[k]  # one kernel for all gradients names what those that are asked for do not need
            version = getattr(x, "_version_counter", None)  # numbers among the inputs have none
            if version is not None and version.stamp > self.sequence:
                raise self._overwritten(self.op.inputs[min(k, len(self.op.inputs) - 1)], version)
            if x is not None and isinstance(self.edges[k], Node) and x._node is None:
                raise detached(self.op.name, self.op.inputs[min(k, len(self.op.inputs) - 1)])
            return x if tensors else getattr(x, "_array", x)
        if kind == "output":
            if self.outputs is FREED:
                raise self._freed()
            held = None if self.outputs is None else self.outputs[k]
            if held is None:  # as of inputs
                return None
            array, version = held
            if version.stamp > self.sequence:
                raise self._overwritten(f"its output {self.op.outputs[k]}", version)
            if not tensors:
                return array
            if not dtypes.has_gradient(array.dtype):
                return make_tensor(array)
            return make_output(array, self if self.op.public == 1 else Branch(self, k))
        if kind == "attr":
            return self.attrs[k] if self.attrs and k in self.attrs else self.op.attrs[k]
        if kind == "needs":
            return needs
        if kind == "inputs":
            if self.inputs is FREED:
                raise self._freed()
            return tuple(self._saved("input", i, needs, tensors) for i in range(k, len(self.edges)))
        which = 0 if kind in ("shape", "shapes") else 1
        assert self.meta is not None
        if kind in ("shapes", "dtypes"):
            return tuple(m[which] for m in self.meta[k:])
        meta = self.meta[k]
        return None if meta is None else meta[which]  # an optional input that was not given has neither shape nor dtype

    def _freed(self) -> GradError:
        return GradError(
            f"backward: the graph through {self.op.name} was freed by an earlier backward; call that one with retain_graph=True, or compute the loss again"
        )

    def _overwritten(self, what: str, version: Version) -> GradError:
        return GradError(
            f"backward: {self.op.name} saved {what}, which {version.writer} then overwrote in place (version {version.value}); "
            f"use the out-of-place form of {version.writer}, or clone() before it"
        )


class ComplexNode(Node):
    """The node of an op that takes or gives complex numbers; its rule runs on tensors always.

    PyTorch's convention: the gradient of a real L by z is dL/d(re z) + i dL/d(im z), so that a step against it descends. For y = f(z),
    f differentiable in the complex sense, that is g times the conjugate of f'(z): a rule written for real numbers, g f'(z), is given
    the conjugate of g, and its result is conjugated. The gradient of a real input is the real part of what comes out.
    """

    __slots__ = ()

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        if _kind(g) is MetaArray:
            return super().pull(g, needs)
        with no_grad():
            return tuple([None if x is None else x._array for x in self._gradients(wrap_gradient(g), needs)])

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return self._gradients(g, needs)

    def _gradients(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        rule = self.op.rule
        assert rule is not None
        assert self.meta is not None
        if not self.op.holomorphic:
            found = self._call(rule, g, needs, True)
        else:
            g = tuple([None if x is None else _conjugate(x) for x in g]) if type(g) is tuple else _conjugate(g)
            found = tuple([None if x is None else _conjugate(x) for x in self._call(rule, g, needs, True)])
        return tuple([x if x is None or m is None else _as_kind(x, m[1]) for x, m in zip(found, self.meta, strict=False)])


def _conjugate(x: Any) -> Any:
    return ops.conj(x) if x._array.dtype.kind == "c" else x


def _as_kind(x: Any, dtype: np.dtype) -> Any:
    """A gradient as that of an input of `dtype`: the real part of a complex one for a real input."""
    if x._array.dtype.kind == "c" and dtype.kind != "c":
        x = ops.real(x)
    return x if x._array.dtype == dtype else ops.cast(x, dtype=dtype)


_SAVED = (
    "self", "other", "result", "input", "weight", "bias", "mat1", "mat2", "index", "target", "dim", "keepdim", "exponent", "mask",
)  # fmt: skip
for _name in _SAVED:
    setattr(Node, "_saved_" + _name, SavedValue(_name))
_SHOWN = {"x": "self", "a": "self", "b": "other", "y": "result"}
notes: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()  # on few nodes, so that the others need no place for it


def detached(who: str, what: str) -> GradError:
    """The error for a saved tensor that has lost its way back: a derivative of the gradient would miss what it was computed from."""
    return GradError(f"backward: {who} saved {what}, which detach_() then cut off its graph; use detach(), which gives another tensor")


FREED: tuple[Any, ...] = ()


class Branch(Node):
    """One output of an op with several: collects that output's gradient and hands it to the op's node as number `index`."""

    __slots__ = ("index",)

    def __init__(self, node: Node, index: int) -> None:
        super().__init__(node.op, (node,), None, None, None, None)
        self.index = index


class Severed(Node):
    """A dead end: the edge of a view that was made outside the graph of a tensor inside it. To those who ask, the view is a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, (), None, None, None, None)


class AccumulateGrad:
    """A leaf as it shows in `next_functions`: its gradient is added to `variable.grad`."""

    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def name(self) -> str:
        return "AccumulateGrad"

    next_functions: tuple[Any, ...] = ()

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> Handle:
        """Call `fn((), grad_outputs)` when the gradient has been added."""
        return Handle(self.variable._leaf_hooks().after, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> Handle:
        """Call `fn(grad_outputs)`, a tuple of one, before the gradient is added; a returned tuple replaces it."""
        return Handle(self.variable._leaf_hooks().before, fn)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary of one's own notes."""
        return notes.setdefault(self, {})

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1  # as PyTorch's, which runs first

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


_accumulators: weakref.WeakValueDictionary[int, AccumulateGrad] = weakref.WeakValueDictionary()  # one for each leaf, by the leaf's id


def accumulator(leaf: Any) -> AccumulateGrad:
    """The AccumulateGrad of a leaf: one object for as long as somebody holds it."""
    with _making:
        found = _accumulators.get(id(leaf))
        if found is None:
            found = _accumulators[id(leaf)] = AccumulateGrad(leaf)
        return found


def next_function(edge: Any) -> tuple[Any, int]:
    """An edge as `next_functions` shows it."""
    if edge is None or type(edge) is Severed:
        return None, 0
    if isinstance(edge, Branch):
        return shown(edge.edges[0]), edge.index
    return (shown(edge), 0) if isinstance(edge, Node) else (accumulator(edge), 0)


def _kind(g: Any) -> type:
    """The array type of a gradient, or of those of several outputs."""
    if type(g) is not tuple:
        return type(g)
    kinds = {type(x) for x in g}
    found = [kind for kind in (WrappedArray, MetaArray, LazyArray, CudaArray) if kind in kinds]
    return found[0] if found else np.ndarray


def as_array(x: Any) -> Any:
    """numpy gives scalars for 0-d results; a gradient is always an array."""
    return x if isinstance(x, np.ndarray | StridedArray | WrappedArray) else np.asarray(x)


def wrap_gradient(g: Any) -> Any:
    """A gradient, or the tuple of those of several outputs (None for one that did not come), as leaf tensors."""
    return tuple([None if x is None else make_tensor(as_array(x)) for x in g]) if type(g) is tuple else make_tensor(as_array(g))
