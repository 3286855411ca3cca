"""autograd.Function inside transforms: each level takes the Function as one step, by its backward, its jvp, its vmap or what can be made of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tritensor.autograd import function as functions
from tritensor.autograd.accumulate import sum_to
from tritensor.autograd.function import Function, FunctionNode
from tritensor.autograd.modes import no_grad, state
from tritensor.autograd.node import Branch
from tritensor.dispatch.level_nodes import lift, unrecorded
from tritensor.func.forward import _primal
from tritensor.func.gradients import vjp
from tritensor.func.mapping import vmap
from tritensor.func.tangents import zeros_like
from tritensor.func.wrapping import below, dual, highest, level_of, recording, settle, to_front, wrap
from tritensor.ground.errors import TransformError
from tritensor.ground.pytree import broadcast_to_and_flatten, outline, tree_flatten, tree_map, tree_unflatten
from tritensor.ground.transforms import GRAD, JVP, VMAP, Level
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told: how many examples, and what random functions do."""

    batch_size: int
    randomness: str


def apply_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cls.apply of arguments of which some are wrapped."""
    args = tuple([settle(x) for x in args])  # layers of transforms that are over are taken off first
    level = highest(args)
    if level is None:
        return cls.apply(*args, **kwargs)
    if not _defines(cls, "setup_context"):
        raise TransformError(
            f"{cls.__name__}: inside vmap, grad or jvp a Function needs a static setup_context(ctx, inputs, output), and a forward without "
            "ctx; split its forward in these two"
        )
    return _KINDS[level.kind](cls, level, args, kwargs)


def _defines(cls: Any, name: str) -> bool:
    """True where a subclass defines a method itself."""
    return any(name in base.__dict__ for base in cls.__mro__ if base not in (Function, functions.FunctionCtx, object))


def _fill_context(cls: Any, args: tuple[Any, ...], out: Any, needs: tuple[bool, ...]) -> Any:
    """A context that setup_context has filled."""
    ctx = functions.FunctionCtx()
    ctx.needs_input_grad = needs
    with no_grad():  # as outside of transforms: what setup_context computes is no part of the graph
        cls.setup_context(ctx, args, out)
    return ctx


def _outputs(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


# -- grad
def _apply_in_grad(cls: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One step below, recorded there, and one node here."""
    values = tuple([below(x, level) for x in args])
    with recording(level):
        made = cls.apply(*values, **kwargs)
    outs = []
    for y in _outputs(made):
        # Forward gave an input back: its wrapper is the output.
        given = next((a for a, v in zip(args, values, strict=True) if v is y and a is not v), None)
        outs.append(given if given is not None else wrap(y, level) if isinstance(y, Tensor) else y)
    out = tuple(outs) if isinstance(made, tuple) else outs[0]
    needs = tuple([level_of(x) is level and x._tracked for x in args])
    if not state.enabled or True not in needs:
        return out
    ctx = _fill_context(cls, args, out, needs)
    wired = functions._record(cls, ctx, args, tuple(outs))
    for y in wired:
        node = y._node if isinstance(y, Tensor) else None
        node = node.edges[0] if isinstance(node, Branch) else node  # of several outputs each hangs at a branch of the node
        if type(node) is FunctionNode:
            node.__class__ = LayerFunctionNode
            ctx._level = level
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()  # outputs among them would hold the node that holds the context
    return tuple(wired) if isinstance(made, tuple) else wired[0]


class LayerFunctionNode(FunctionNode):
    """The node of a Function at a level: gradients are lifted to it, as LevelNode does."""

    __slots__ = ()

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        level = self.context._level  # type: ignore[attr-defined]
        # The engine adds bare arrays, which may have lost the level.
        made = tuple([None if x is None else lift(x, level) for x in (g if type(g) is tuple else (g,))])
        with unrecorded(level):
            return tuple([None if x is None else x._array for x in self._backward(made)])


# -- jvp
def _is_differentiable(x: Any) -> bool:
    """True where an argument can have a tangent."""
    return isinstance(x, Tensor) and x.dtype.kind in ("float", "complex")


def _apply_in_jvp(cls: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """By the Function's own jvp; without one by the gradient's gradient."""
    primals = tuple([_primal(x, level) for x in args])
    tangents = tuple([x._array.tangent if level_of(x) is level else None for x in args])
    if _defines(cls, "jvp"):
        made = cls.apply(*primals, **kwargs)
        ctx = _fill_context(cls, primals, made, tuple([t is not None for t in tangents]))
        kept = ctx.saved_for_forward or ctx.to_save  # PyTorch lets jvp read what was saved for backward
        given = _SavedView(ctx, kept)
        if ctx.materialize_grads:
            tangents = tuple([zeros_like(x) if t is None and _is_differentiable(x) else t for x, t in zip(primals, tangents, strict=True)])
        moved = _outputs(cls.jvp(given, *tangents))
    else:
        made, moved = _push_by_gradients(cls, primals, tangents, kwargs)
    outs = _outputs(made)
    if len(moved) != len(outs):
        raise TransformError(f"{cls.__name__}: jvp returned {len(moved)} tangents for {len(outs)} outputs; return one for each")
    wrapped = [dual(y, level, t) if isinstance(y, Tensor) else y for y, t in zip(outs, moved, strict=True)]
    return tuple(wrapped) if isinstance(made, tuple) else wrapped[0]


def _push_by_gradients(
    cls: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    places = [i for i, t in enumerate(tangents) if t is not None]

    def part(*given: Any) -> Any:
        values = list(primals)
        for i, x in zip(places, given, strict=True):
            values[i] = x
        return cls.apply(*values, **kwargs)

    made, pull = vjp(part, *[primals[i] for i in places])
    ones = tree_map(lambda y: zeros_like(y) + 1, made)  # not zeros, which would win over what they are multiplied by
    _, push = vjp(pull, ones)
    (moved,) = push(tuple([tangents[i] for i in places]))
    return made, _outputs(moved)


class _SavedView:
    """A context as jvp and mapped backwards see it: `saved_tensors` are given, all else is the context's."""

    def __init__(self, ctx: Any, saved: tuple[Any, ...], needs: Any = None) -> None:
        self.__dict__.update(_ctx=ctx, saved_tensors=tuple(saved), needs_input_grad=ctx.needs_input_grad if needs is None else needs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_ctx"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_ctx"], name, value)


# -- vmap
def _apply_in_vmap(cls: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """By the Function's own vmap, or by one that maps its forward and its backward."""
    values = tuple([below(x, level) for x in args])
    dims = tuple([0 if level_of(x) is level and x._array.batched else None for x in args])
    if all(d is None for d in dims):  # nothing differs between the examples: one call serves all
        made = cls.apply(*values, **kwargs)
        return tree_map(lambda y: wrap(y, level) if isinstance(y, Tensor) else y, made)
    own = _defines(cls, "vmap")
    if getattr(cls, "generate_vmap_rule", False):
        if own:
            raise TransformError(f"{cls.__name__}: it has a vmap, and generate_vmap_rule=True; leave one of the two out")
        made, out_dims = _make_mapped_function(cls, level, dims).apply(*values, **kwargs), 0
    elif own:
        made, out_dims = cls.vmap(VmapInfo(level.size, level.randomness), dims, *values, **kwargs)
    else:
        raise TransformError(
            f"{cls.__name__}: it has no vmap; define a static vmap(info, in_dims, *args), or set generate_vmap_rule = True in the class"
        )
    flat, spec = tree_flatten(made)
    placed = broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda x: x is None)
    if placed is None:
        raise TransformError(f"{cls.__name__}: vmap returned out_dims {out_dims} for outputs {outline(spec)}; give one for each")
    outs = []
    for y, d in zip(flat, placed, strict=True):
        if not isinstance(y, Tensor):
            outs.append(y)
        else:
            outs.append(wrap(y, level) if d is None else wrap(to_front(y, d % len(y._array.shape)), level, batched=True))
    return tree_unflatten(outs, spec)


def _make_mapped_function(cls: Any, level: Level, dims: tuple[int | None, ...]) -> Any:
    """A Function of whole batches: its forward and backward are those of `cls`, mapped."""
    size, randomness = level.size, level.randomness

    def forward(*args: Any, **kwargs: Any) -> Any:
        return vmap(lambda *xs: cls.forward(*xs, **kwargs), dims, randomness=randomness)(*args)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        with Level(VMAP, state.enabled, size, randomness) as inner:  # setup_context sees one example, as forward did
            seen = tuple([wrap(x, inner, batched=True) if d is not None else x for x, d in zip(inputs, dims, strict=True)])
            outs = tree_map(lambda y: wrap(y, inner, batched=True) if isinstance(y, Tensor) else y, output)
            held = _fill_context(cls, seen, outs, ctx.needs_input_grad)
            # an input or output that was saved is the very one of the batch, so that it finds its place in the graph
            ctx._held, ctx._shapes = held, [x._array.shape if isinstance(x, Tensor) else None for x in seen]
            kept, ctx._dims = _split_saved(held.to_save, inner)
            ctx.save_for_backward(*kept)
            kept, ctx._forward_dims = _split_saved(held.saved_for_forward or held.to_save, inner)
            ctx.save_for_forward(*kept)
            ctx.set_materialize_grads(held.materialize_grads)
            ctx.mark_non_differentiable(*[t._array.value for t in held.non_differentiable])

    def backward(ctx: Any, *grads: Any) -> Any:
        needs = ctx.needs_input_grad

        def one(saved: Any, gs: Any) -> Any:
            found = _outputs(functions.pulled(cls, _SavedView(ctx._held, saved, needs), tuple(gs)))
            # A gradient that nobody asks for is not summed over the batch.
            wanted = [g if g is not None and i < len(dims) and needs[i] else None for i, g in enumerate(found)]
            return [g if g is None else sum_to(g, ctx._shapes[i]) for i, g in enumerate(wanted)]  # of one example

        return tuple(_sum_shared(_map_with_none(one, (tuple(ctx.saved_tensors), grads), (ctx._dims, tuple([None if g is None else 0 for g in grads])),
                                       size, randomness), dims))  # fmt: skip

    def jvp(ctx: Any, *tangents: Any) -> Any:
        def one(saved: Any, ts: Any) -> list[Any]:
            made.append(cls.jvp(_SavedView(ctx._held, saved), *ts))  # kept to know whether it gave a tuple
            return list(_outputs(made[0]))

        made: list[Any] = []
        batched = tuple([None if t is None else d for t, d in zip(tangents, dims, strict=True)])
        moved = _map_with_none(one, (tuple(ctx.saved_tensors), tangents), (ctx._forward_dims, batched), size, randomness)
        return tuple(moved) if isinstance(made[0], tuple) else moved[0]

    body: dict[str, Any] = {f.__name__: staticmethod(f) for f in (forward, setup_context, backward)}
    if _defines(cls, "jvp"):
        body["jvp"] = staticmethod(jvp)
    body["generate_vmap_rule"] = True  # a vmap around this one maps it in the same way
    return type("Vmapped" + cls.__name__, (Function,), body)


def _split_saved(saved: tuple[Any, ...], level: Level) -> tuple[list[Any], tuple[int | None, ...]]:
    """What one example saved as what all saved, and which of it has the examples as its first dimension."""
    mine = [level_of(t) is level for t in saved]
    return (
        [t._array.value if m else t for t, m in zip(saved, mine, strict=True)],
        tuple([0 if m and t._array.batched else None for t, m in zip(saved, mine, strict=True)]),
    )


def _map_with_none(one: Callable[..., list[Any]], args: tuple[Any, ...], in_dims: Any, size: int, randomness: str) -> list[Any]:
    """vmap of a function that returns None in places."""
    with Level(VMAP, state.enabled, size, randomness) as level:
        flat, spec = tree_flatten(args)
        dims = tree_flatten(in_dims)[0]
        seen = [wrap(x, level, batched=True) if d is not None and isinstance(x, Tensor) else x for x, d in zip(flat, dims, strict=True)]
        found = []
        for g in one(*tree_unflatten(seen, spec)):
            g = settle(g)
            if isinstance(g, Tensor):
                mine = level_of(g) is level
                value = g._array.value if mine else g
                # The same for all: the others expect a row for each.
                g = value if mine and g._array.batched else ops.expand(value, shape=(size, *value._array.shape))
            found.append(g)
    return found


def _sum_shared(grads: list[Any], dims: tuple[int | None, ...]) -> list[Any]:
    """An input that is the same for all examples has the sum of their gradients."""
    return [ops.sum(g, dim=(0,), keepdim=False) if g is not None and dims[i] is None else g for i, g in enumerate(grads)]


_KINDS: dict[str, Callable[..., Any]] = {GRAD: _apply_in_grad, JVP: _apply_in_jvp, VMAP: _apply_in_vmap}
