"""Derivatives in reverse: grad, grad_and_value, vjp.

The outermost one watches its inputs in the ordinary graph; one inside another transform puts a layer over them, so that the graph of each is its
own and no_grad inside the function means the innermost alone, as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.autograd import engine
from tritensor.autograd import node as nodes
from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import Node, version_of
from tritensor.func.tangents import zeros_like
from tritensor.func.wrapping import below, in_graph, level_of, settle, wrap
from tritensor.ground.errors import GradError, ShapeError, TransformError
from tritensor.ground.pytree import described, outline, tree_flatten, tree_unflatten
from tritensor.ground.transforms import GRAD, Level
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor, new_tensor

Argnums = int | tuple[int, ...]


def watch(x: Tensor, level: Level) -> Tensor:
    """A tensor on x's memory that a derivative is taken by."""
    x = settle(x)
    if not level.outermost:
        leaf = wrap(x, level)  # a graph of its own: the outer derivative must not see these nodes
    elif x._tracked and level.recording:
        edge = engine.edge_of(x)
        leaf = nodes.make_output(x._array, Node(registry["copy"], (edge,), None, None, {}, ((x._array.shape, x._array.dtype),)))
    else:
        leaf = new_tensor(x._array)  # nobody differentiates further out: an ordinary leaf will do
    leaf._version_counter = version_of(x)
    leaf._tracked = True
    return leaf


def release_output(x: Any, level: Level, keep: bool) -> Any:
    """An output as those outside see it: `keep` says that it may be in their graph."""
    x = settle(x)
    if not isinstance(x, Tensor):
        return x
    if not level.outermost:
        return below(x, level)
    return x if keep or not x._tracked else x.detach()  # the graph of a derivative ends with it


def gradients(
    outputs: Sequence[Tensor], leaves: Sequence[Tensor], seeds: Sequence[Tensor | None], level: Level, retain: bool, create: bool
) -> list[Tensor]:
    """The gradients by the leaves; zeros where an output does not depend on one."""
    pairs = [(y, s) for y, s in zip(outputs, seeds, strict=True) if y._tracked]
    found: Sequence[Any] = [None] * len(leaves)
    if pairs:
        found = engine.grad(
            [y for y, _ in pairs], leaves, [s for _, s in pairs], retain_graph=retain, create_graph=create, allow_unused=True
        )
    return [zeros_like(below(x, level)) if g is None else below(settle(g), level) for g, x in zip(found, leaves, strict=True)]


def leads_elsewhere(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> bool:
    """True where the outputs depend on tensors of an outer graph: then their gradients may be differentiated again."""
    own = {id(x) for x in leaves}  # by id: tensors compare by their elements
    for n in engine.collect_nodes([engine.edge_of(y) for y in outputs if y._tracked]):
        for e in n.edges:
            if e is not None and not isinstance(e, Node) and id(e) not in own and e._tracked:
                return True
    return any(x._node is not None for x in leaves)


def choose_places(name: str, args: tuple[Any, ...], argnums: Any) -> tuple[int, ...]:
    """The arguments to differentiate by, counted from the front. Raises RuntimeError for one that is not there or named twice."""
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    for i in given:
        if isinstance(i, bool) or not isinstance(i, int):  # True is an int, and no place
            raise TransformError(f"{name}: argnums is {argnums!r}; give the place of an argument, or a tuple of places")
        if not -len(args) <= i < len(args):
            raise TransformError(
                f"{name}: argnums {i} of {len(args)} arguments without keyword; give a place from {-len(args)} to {len(args) - 1}"
            )
    if not given:
        raise TransformError(f"{name}: argnums is (), which names no argument; name at least one")
    places = tuple([i % len(args) for i in given])
    if len(set(places)) != len(places):
        raise TransformError(f"{name}: argnums {argnums} names an argument twice; name each once")
    return places


def watch_leaves(name: str, tree: Any, level: Level) -> tuple[list[Any], Any]:
    """The leaves of an argument, watched, and its shape. Raises TypeError for what is no tensor, GradError for one without gradients."""
    leaves, spec = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: {described(x)} is among what to differentiate by; give tensors, others as further arguments")
        if x.dtype.kind not in ("float", "complex"):
            raise GradError(
                f"{name}: an argument is {x.dtype.name}, which has no gradient; convert it with .float(), or leave it out of argnums"
            )
    return [watch(x, level) for x in leaves], spec


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (the gradient of func's scalar by the argument `argnums`, func's value).

    Args:
        func: of tensors, or nested dicts, lists and tuples of them; returns a tensor of one element without dimensions.
        argnums: place of the argument, or several in a tuple, which gives a tuple of gradients.
        has_aux: func returns (value, whatever); the value becomes (value, whatever).

    Raises:
        TransformError: the output is no scalar, argnums names no argument.
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value("grad_and_value", func, argnums, has_aux, args, kwargs)

    return call


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of func's scalar by the argument `argnums`; with has_aux (gradient, whatever). See grad_and_value.

    >>> tt.func.grad(lambda x: (x**3).sum())(tt.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        found, value = _grad_and_value("grad", func, argnums, has_aux, args, kwargs)
        return (found, value[1]) if has_aux else found

    return call


def _grad_and_value(
    name: str, func: Callable[..., Any], argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    with Level(GRAD, state.enabled) as level, enable_grad():
        places = choose_places(name, args, argnums)
        given = list(args)
        leaves, parts = [], []
        for i in places:
            found, spec = watch_leaves(name, args[i], level)
            given[i] = tree_unflatten(found, spec)
            parts.append((len(found), spec))
            leaves += found
        out = func(*given, **kwargs)
        aux = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TransformError(
                    f"{name}: has_aux is True and the function returned {_describe_result(out)}; it must return (value, whatever)"
                )
            out, aux = out
        y = settle(out)
        if not isinstance(y, Tensor):
            raise TransformError(f"{name}: the function returned {_describe_result(out)}; it must return a tensor")
        if y._array.shape:
            raise TransformError(
                f"{name}: the function returned a tensor of shape {tuple(y._array.shape)}, which is no scalar; reduce it (.sum(), .mean()), or "
                "use vjp or jacrev"
            )
        y_here = level.outermost or level_of(y) is level  # an output that does not depend on the leaves has zeros for gradients
        # Only then can anybody differentiate the gradient again.
        keep = level.outermost and level.recording and leads_elsewhere([y], leaves)
        found = gradients([y] if y_here else [], leaves, [None] if y_here else [], level, keep, keep)
        value, aux = release_output(y, level, keep), _release_aux(aux, leaves, level)
    per_place, at = [], 0
    for count, spec in parts:
        per_place.append(tree_unflatten(found[at : at + count], spec))
        at += count
    return tuple(per_place) if isinstance(argnums, tuple) else per_place[0], (value, aux) if has_aux else value


def _release_aux(aux: Any, leaves: list[Any], level: Level) -> Any:
    """What a function gave beside its value, as those outside see it."""
    flat, spec = tree_flatten(aux)
    found = [settle(x) for x in flat]
    keep = level.recording and leads_elsewhere([x for x in found if isinstance(x, Tensor)], leaves)
    return tree_unflatten([release_output(x, level, keep) for x in found], spec)


def _describe_result(x: Any) -> str:
    return f"a tuple of {len(x)}" if isinstance(x, tuple) else f"{described(x)}"


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """func(*primals), and the function that takes a cotangent of its output to the gradients by the primals: v -> v^T J.

    Args:
        primals: tensors, or nested dicts, lists and tuples of them.
        has_aux: func returns (output, whatever); the result is (output, vjp_fn, whatever).

    Returns:
        (output, vjp_fn); vjp_fn(*cotangents) can be called any number of times, under other transforms as well. It gives a tuple with
        a gradient for each primal.

    Raises:
        TransformError: the output is no tensor, or one of integers.
    """
    with Level(GRAD, state.enabled) as level, enable_grad():
        leaves, spec = watch_leaves("vjp", primals, level)
        out = func(*tree_unflatten(leaves, spec))
        aux = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TransformError(
                    f"vjp: has_aux is True and the function returned {_describe_result(out)}; it must return (output, whatever)"
                )
            out, aux = out
        flat, out_spec = tree_flatten(out)
        outputs = [settle(y) for y in flat]
        for y in outputs:
            if not isinstance(y, Tensor):
                raise TransformError(f"vjp: the function returned {described(y)}; it must return tensors, or nested tuples of them")
            if y.dtype.kind not in ("float", "complex"):
                raise TransformError(
                    f"vjp: the function returned a {y.dtype.name} tensor, which has no gradient; return it beside the others with has_aux=True"
                )
        if not outputs:
            raise TransformError("vjp: the function returned no tensor; it must return at least one")
        # Inside another transform somebody may always ask.
        elsewhere = not level.outermost or (level.recording and leads_elsewhere(outputs, leaves))
        result = tree_unflatten([release_output(y, level, elsewhere) for y in outputs], out_spec)
        aux = _release_aux(aux, leaves, level)
        mine = [level.outermost or level_of(y) is level for y in outputs]

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents  # vjp_fn((a, b)) and vjp_fn(a, b) are one call, as in PyTorch
        seeds, have = tree_flatten(given)
        if have != out_spec:
            raise TransformError(
                f"vjp: the cotangents are {outline(have)}, the function's output {outline(out_spec)}; give tensors in containers like the output's"
            )
        for s, y in zip(seeds, outputs, strict=True):
            if not isinstance(s, Tensor):
                raise TransformError(f"vjp: a cotangent is {described(s)}; give a tensor")
            if tuple(s._array.shape) != tuple(y._array.shape):
                raise ShapeError(
                    f"vjp: a cotangent {tuple(s._array.shape)} for an output of shape {tuple(y._array.shape)}; both must be the same"
                )
        # A graph of the gradient only for who is there to use it.
        create = state.enabled and (elsewhere or any(in_graph(s) for s in seeds)) if create_graph is None else create_graph
        chosen = [(y, s) for y, s, yes in zip(outputs, seeds, mine, strict=True) if yes]
        found = gradients([y for y, _ in chosen], leaves, [s for _, s in chosen], level, retain_graph, create)
        return tree_unflatten([settle(g) for g in found], spec)

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)
