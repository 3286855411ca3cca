"""The derivative of an op along tangents of its inputs, for jvp: by a rule where one is simple, else as the gradient of the op's gradient.

That gradient, g -> J^T g, is linear in g and made of ops that are differentiable again, so that its own gradient by g along t is J t: every op
with a gradient has a tangent.
"""

from __future__ import annotations

from typing import Any

from tritensor.autograd import engine
from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import ComplexNode, Node
from tritensor.dispatch import apply, run_planned
from tritensor.func.wrapping import highest, in_graph, node_of, settle
from tritensor.ground import dtypes
from tritensor.ground.transforms import GRAD, Level, WrappedArray
from tritensor.ops.table import Op, ops
from tritensor.tensor.core import Tensor, new_tensor

# Linear in their one input: the tangent goes the same way.
LINEAR = frozenset(
    [
        "conj",
        "real",
        "imag",
        "view_as_real",
        "view_as_complex",
        "tril",
        "triu",
        "copy",
        "cast",
        "neg",
        "reshape",
        "permute",
        "expand",
        "as_strided",
        "diagonal",
        "unfold",
        "index_view",
        "pad_view",
        "pad_diagonal",
        "edge_pad",
        "edge_pad_adjoint",
        "im2col",
        "col2im",
        "resample",
        "resample_adjoint",
        "sum",
        "mean",
        "cumsum",
        "flip",
        "roll",
        "avg_pool2d",
        "avg_pool2d_spread",
        "fft_c2c",
        "fft_r2c",
        "fft_of_real",
        "fft_c2r",
        "overlap_add",
    ]
)
BILINEAR = frozenset(["matmul"])
JOINED = frozenset(["cat", "stack"])


def push(
    op: Op, primals: tuple[Any, ...], tangents: tuple[Tensor | None, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    """The tangents of an op's outputs; None stands for zeros."""
    if op.rule is None or not any(dtypes.has_gradient(y._array.dtype) for y in outs):  # integers and comparisons do not move
        return (None,) * len(outs)
    if op.name in LINEAR:
        return (run_planned(op, tangents, attrs),)
    if op.name == "embedding":  # linear, the row of padding too, which gradients leave out
        return (apply(op, tangents[0], primals[1], padding_idx=None),)
    if op.name in JOINED:
        return (apply(op, *[zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)], **attrs),)
    if op.name in BILINEAR:
        return (_push_bilinear(op, primals, tangents, attrs),)
    # A conjugate is no product with a number: the elementwise way would be wrong.
    complexes = any([x._array.dtype.kind == "c" for x in (*primals, *outs) if isinstance(x, Tensor)])
    if op.broadcasts and op.public == 1 and not complexes:
        return (_push_elementwise(op, primals, tangents, attrs, outs[0]),)
    return _push_twice(op, primals, tangents, attrs, outs, complexes)


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of a tensor's shape, type and device."""
    made: Tensor = ops.full(shape=tuple(x._array.shape), value=0, dtype=x._array.dtype, device=x.device)
    return made


def _push_bilinear(op: Op, primals: tuple[Any, ...], tangents: tuple[Tensor | None, ...], attrs: dict[str, Any]) -> Tensor | None:
    total = None
    for i, t in enumerate(tangents):
        if t is not None:
            part = run_planned(op, [t if k == i else x for k, x in enumerate(primals)], attrs)
            total = part if total is None else ops.add(total, part)
    return total


class _Probe(Node):
    """A node that is asked for its rule once, and hangs in no graph. Its outputs are the tensors themselves."""

    __slots__ = ("outs",)
    outs: tuple[Tensor, ...]

    def _saved(self, kind: str, k: Any, needs: tuple[bool, ...], tensors: bool) -> Any:
        return self.outs[k] if kind == "output" else Node._saved(self, kind, k, needs, tensors)

    def gradients(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._call(self.op.rule, g, needs, True)


class _ComplexProbe(ComplexNode):
    """The same of an op of complex numbers."""

    __slots__ = ("outs",)

    _saved = _Probe._saved

    def gradients(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        return self._gradients(g, needs)


def _probe(
    op: Op, primals: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...], needs: tuple[bool, ...], complexes: bool
) -> Any:
    node = node_of(op, primals, attrs, outs, tuple([True if n else None for n in needs]), _ComplexProbe if complexes else _Probe)
    node.outs = outs  # type: ignore[attr-defined]
    return node


def _push_elementwise(
    op: Op, primals: tuple[Any, ...], tangents: tuple[Tensor | None, ...], attrs: dict[str, Any], out: Tensor
) -> Tensor | None:
    """The derivative of each element is a number: the gradient's formula with the tangent in place of g."""
    shape, total = tuple(out._array.shape), None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        if t._array.dtype != out._array.dtype:
            t = ops.cast(t, dtype=out._array.dtype)  # of operands that were promoted
        if t._array.shape != shape:
            t = ops.expand(t, shape=shape)
        needs = tuple([k == i for k in range(len(primals))])  # one at a time: each has its own tangent in place of g
        part = _probe(op, primals, attrs, (out,), needs, False).gradients(t, needs)[i]
        if part is not None:
            total = part if total is None else ops.add(total, part)
    return total


def _push_twice(
    op: Op, primals: tuple[Any, ...], tangents: tuple[Tensor | None, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...], complexes: bool
) -> tuple[Tensor | None, ...]:
    """The gradient's gradient. Complex eigenvectors refuse gradients by their phase, of which they ask plain numbers: those get a level of their own."""
    create = state.enabled and any(in_graph(x) for x in (*primals, *tangents))
    level = highest([*primals, *tangents])
    if level is not None or not complexes:
        return _push_twice_at(level, op, primals, tangents, attrs, outs, complexes, create)
    with Level(GRAD, state.enabled) as own:
        moved = _push_twice_at(own, op, primals, tangents, attrs, outs, complexes, create)
    return tuple([settle(t) for t in moved])


def _push_twice_at(
    level: Level | None, op: Op, primals: tuple[Any, ...], tangents: tuple[Tensor | None, ...], attrs: dict[str, Any],
    outs: tuple[Tensor, ...], complexes: bool, create: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    needs = tuple([t is not None for t in tangents])
    given: list[Tensor | None] = []
    for y in outs:
        if not dtypes.has_gradient(y._array.dtype):
            given.append(None)
            continue
        # Ones: a gradient of zero wins over whatever it is multiplied by, and would hide that.
        plain: Tensor = ops.full(shape=tuple(y._array.shape), value=1, dtype=y._array.dtype, device=y.device)
        g = plain if level is None else new_tensor(WrappedArray(level, plain))
        g._tracked = True
        given.append(g)
    with enable_grad():
        found = _probe(op, primals, attrs, outs, needs, complexes).gradients(tuple(given) if op.public > 1 else given[0], needs)
        pairs = []
        for f, t, x in zip(found, tangents, primals, strict=False):
            if f is None or t is None or not f._tracked:  # not a function of g: the op does not move along this input
                continue
            pairs.append((engine.sum_to(f, tuple(x._array.shape)) if f._array.shape != x._array.shape else f, t))
    if not pairs:
        return (None,) * len(outs)
    targets = [g for g in given if g is not None]
    moved = iter(engine.grad([f for f, _ in pairs], targets, [t for _, t in pairs], create_graph=create, allow_unused=True))
    for g in targets:  # a rule that is linear without being written so leaves them in the graph, where they are nobody's input
        g._tracked = False
    return tuple([None if g is None else next(moved) for g in given])
