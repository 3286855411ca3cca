"""Derivatives forward: jvp, and linearize, which keeps what a function does to tangents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import version_of
from tritensor.autograd.saved import borrow_all_saved
from tritensor.dispatch.level_nodes import step_node
from tritensor.func.gradients import vjp
from tritensor.func.tangents import zeros_like
from tritensor.func.wrapping import dual, in_graph, level_of, settle
from tritensor.ground.errors import DTypeError, ShapeError, TransformError
from tritensor.ground.pytree import described, outline, tree_flatten, tree_map, tree_unflatten
from tritensor.ground.transforms import JVP, Level
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor, new_tensor


def check_tangent(name: str, x: Any, t: Any) -> None:
    """Raise where a tangent does not fit its primal: it has its shape and type, and stands on its device."""
    for what, y in (("primal", x), ("tangent", t)):
        if not isinstance(y, Tensor):
            raise TypeError(f"{name}: a {what} is {described(y)}; give tensors")
    if tuple(x._array.shape) != tuple(t._array.shape):
        raise ShapeError(f"{name}: a primal {tuple(x._array.shape)} with a tangent {tuple(t._array.shape)}; both must have one shape")
    if x._array.dtype != t._array.dtype:
        raise DTypeError(f"{name}: a primal of {x.dtype.name} with a tangent of {t.dtype.name}; cast one with .to(...)")


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """func(*primals), and the derivative of it along the tangents: J t, computed beside the function itself, without a backward pass.

    Args:
        primals, tangents: tuples of tensors, or of nested dicts, lists and tuples of them, of one structure and the same shapes and types.
        strict: raise where an output does not depend on the primals, instead of giving zeros.
        has_aux: func returns (output, whatever); the result is (output, tangent, whatever).

    Raises:
        TransformError: structures that differ, an output that is no tensor.
    """
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple) or not given:
            raise TransformError(
                f"jvp: {what} is {'empty' if isinstance(given, tuple) else f'{described(given)}'}; give a tuple with one for each argument"
            )
    flat, spec = tree_flatten(primals)
    moved, other = tree_flatten(tangents)
    if spec != other:  # containers must match: a tangent belongs to the leaf in its place
        raise TransformError(f"jvp: primals are {outline(spec)}, tangents {outline(other)}; give both in the same containers")
    with Level(JVP, state.enabled) as level:
        duals: list[Tensor] = []
        apart: list[Tensor] = []  # so that a write to one primal is no write to another's tangent
        for x, t in zip(flat, moved, strict=True):
            check_tangent("jvp", x, t)
            x, t = settle(x), settle(t)  # arguments may come out of a transform that is over
            duals.append(dual(x, level, t, apart))
            apart += [x, t]
        out = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TransformError("jvp: has_aux is True and the function did not return a pair; it must return (output, whatever)")
            out, aux = out
            aux = tree_map(lambda x: _primal(x, level), aux)
        outputs, out_spec = tree_flatten(out)
        values, along = [], []
        for y in map(settle, outputs):
            if not isinstance(y, Tensor):
                raise TransformError(f"jvp: the function returned {described(y)}; it must return tensors, or nested tuples of them")
            tangent = y._array.tangent if level_of(y) is level else None  # an output of an outer level does not depend on these primals
            if tangent is None and strict:
                raise TransformError("jvp: an output does not depend on the primals, and strict is True; leave strict out to get zeros")
            value = _primal(y, level)
            values.append(value)
            along.append(zeros_like(value) if tangent is None else tangent)
    pair = tree_unflatten(values, out_spec), tree_unflatten(along, out_spec)
    return (*pair, aux) if has_aux else pair


def _primal(x: Any, level: Level) -> Any:
    x = settle(x)
    return x._array.value if level_of(x) is level else x


def _step_behind(leaf: Tensor) -> Tensor:
    """The same memory one step behind a leaf, which itself must not be written."""
    found = new_tensor(leaf._array)
    found._version_counter = version_of(leaf)  # one counter: a write to the copy is a write to the leaf's memory
    found._set_node(step_node(registry["copy"], leaf, {}, ((leaf._array.shape, leaf._array.dtype),), leaf._array))
    return found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """func(*primals), and the function that takes tangents to J t at these primals; func itself does not run again.

    The gradient v -> v^T J is kept with its graph, and its own gradient along t is J t. What func, or anybody later, writes over is copied before, where that
    graph needs it. Raises TransformError for tangents of another structure.
    """
    if not primals:
        raise TransformError("linearize: there are no primals; give at least one")
    with enable_grad(), borrow_all_saved():  # the graph is kept for long, and func's caller may write to what it saved
        output, pull = vjp(lambda *given: func(*tree_map(_step_behind, given)), *primals)
        outs, out_spec = tree_flatten(output)
        # At ones: the map is linear, so that any place will do, and zeros would hide terms.
        _, push = vjp(lambda *v: pull(tree_unflatten(v, out_spec)), *[zeros_like(y) + 1 for y in outs])
    flat, spec = tree_flatten(primals)

    def jvp_fn(*tangents: Any) -> Any:
        given, have = tree_flatten(tangents)
        if have != spec:
            raise TransformError(
                f"linearize: the tangents are {outline(have)}, the primals {outline(spec)}; give both in the same containers"
            )
        for x, t in zip(flat, given, strict=True):
            check_tangent("linearize", x, t)
        create = state.enabled and any(in_graph(x) for x in (*flat, *given))  # else each call would leave a graph that nobody asks for
        return tree_unflatten(push(tangents, create_graph=create), out_spec)

    return output, jvp_fn
