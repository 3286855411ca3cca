"""Records of a call in the graph: its node, shared version counters of views, versions of what it overwrites."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import Branch, ComplexNode, Node, Version, version_of
from tritensor.autograd.saved import copy_for_borrowers, note_borrowed
from tritensor.ground import dtypes
from tritensor.ground.errors import GradError
from tritensor.ops.table import Op

# Set by `dispatcher.install`: the Tensor class.
_Tensor: Any = None


def install(tensor_class: Any) -> None:
    """Tell which class tensors are of."""
    global _Tensor
    _Tensor = tensor_class


def record_node(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Any, ...], arrays: tuple[Any, ...]) -> Node:
    """Make the node of one call and hang the outputs on it. `arrays` are all output arrays, residuals included."""
    edges = tuple([_edge(x) for x in inputs])
    kept_in, kept_out, meta_wanted = op.keep(tuple([e is not None for e in edges]))
    saved = None
    if True in kept_in:
        if op.variadic:
            last = len(kept_in) - 1
            saved = tuple([x if kept_in[min(i, last)] else None for i, x in enumerate(inputs)])
        else:
            saved = tuple([x if k else None for x, k in zip(inputs, kept_in, strict=True)])
    if not op.view and _has_complex(inputs, arrays):
        node: Node = ComplexNode(op, edges, saved, None, attrs, _meta(inputs))
    else:
        node = Node(op, edges, saved, None, attrs, _meta(inputs) if meta_wanted else None)
    if True in kept_out:
        held: list[Any] = []
        for i, k in enumerate(kept_out):
            if not k:
                held.append(None)
                continue
            if i >= len(outs):
                held.append((arrays[i], Version()))
                continue
            if outs[i]._version_counter is None:
                outs[i]._version_counter = Version()
            held.append((arrays[i], outs[i]._version_counter))
        node.outputs = tuple(held)
    if state.watch is not None:
        state.watch(node)
    if op.borrows:
        note_borrowed(node)
    if len(outs) == 1:
        outs[0]._node = node
        outs[0]._tracked = True
    else:
        for i, out in enumerate(outs):
            if dtypes.has_gradient(out._array.dtype):
                out._node = Branch(node, i)
                out._tracked = True
    return node


def _edge(x: Any) -> Any:
    if isinstance(x, _Tensor) and x._tracked:
        return x._node if x._node is not None else x
    return None


def _has_complex(inputs: tuple[Any, ...], arrays: tuple[Any, ...]) -> bool:
    """True where complex numbers take part. A view needs no care for them: its rule only moves them."""
    return any([a.dtype.kind == "c" for a in arrays]) or any([isinstance(x, _Tensor) and x._array.dtype.kind == "c" for x in inputs])


def _meta(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([(x._array.shape, x._array.dtype) if isinstance(x, _Tensor) else None for x in inputs])


def share(out: Any, base: Any, op: Op, attrs: dict[str, Any]) -> None:
    """A view has its base's version counter, and the base knows of it, so that an in-place write reaches both graphs."""
    out._version_counter = base._version_counter or version_of(base)
    out._record_view_of(base, (op, attrs, ((base._array.shape, base._array.dtype),)), state.enabled)


def refuse_written(op: Op, inputs: tuple[Any, ...]) -> None:
    """Raise GradError where an op is about to overwrite an input that is in the graph; where it may, nodes that borrowed the input get a copy."""
    targets = [(name, x) for name, x in zip(op.inputs, inputs, strict=False) if name in op.mutates and x is not None]
    for name, x in targets:
        if x._tracked and state.enabled:
            raise GradError(f"{op.name}: {name} requires grad and would be overwritten; call it under no_grad()")
    for _, x in targets:
        copy_for_borrowers(x)


def written(op: Op, inputs: tuple[Any, ...]) -> None:
    """An op has overwritten some of its inputs."""
    for name, x in zip(op.inputs, inputs, strict=False):
        if name in op.mutates and x is not None:
            version_of(x).bump(op.name)
