"""autograd.Function: a user's own forward and backward, with the context object that PyTorch passes to both."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import edge_of, sum_to
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.node import Branch, Node, version_of
from tritensor.autograd.saved import Saved
from tritensor.ground.device import cpu
from tritensor.ground.dtypes import has_gradient
from tritensor.ground.errors import GradError, ShapeError
from tritensor.ground.transforms import WrappedArray, running, transform
from tritensor.ops.table import ops


class _FunctionOp:
    """Stands in a node's `op` for a user's Function: name, and how many outputs."""

    __slots__ = ("broadcasts", "inputs", "name", "outputs", "public")

    def __init__(self, name: str, inputs: int, public: int) -> None:
        self.name = name
        self.inputs = tuple(f"input {i}" for i in range(inputs))
        self.outputs = tuple(f"output {i}" for i in range(public))
        self.public = public
        self.broadcasts = True


@functools.lru_cache(maxsize=1024)
def _function_op(name: str, inputs: int, public: int) -> _FunctionOp:
    return _FunctionOp(name, inputs, public)


class FunctionCtx:
    """What `forward` leaves for `backward`: `save_for_backward(...)`, any attribute, and `needs_input_grad`."""

    # Set by what a call does; those of most are as they stand here.
    to_save: tuple[Any, ...] = ()  # until forward is over
    saved_for_forward: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: tuple[Saved | None, ...] = ()
    _node: Callable[..., Any] = staticmethod(lambda: None)  # later a weak reference: the node holds the context, which would be a cycle
    _freed = False
    _once = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or intermediate ones; None is allowed) for backward, guarded against in-place writes."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which reads them from `saved_tensors`."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """These outputs get no gradient."""
        self.non_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """These inputs were written in place, and are returned."""
        self.dirty_tensors = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """True where backward receives zeros (the default) or None for an output that got no gradient."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Accepted: which tensors share memory is known without it."""
        said = "mark_shared_storage is deprecated, as in PyTorch: which tensors share memory is known; leave it out"
        warnings.warn(said, FutureWarning, stacklevel=2)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """saved_tensors under its old name."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept by save_for_backward. Raises GradError where one was written since, and once the graph was freed."""
        if self._freed:
            raise GradError(
                "backward: the graph through this Function was freed by an earlier backward; call that one with retain_graph=True"
            )
        if self._once:
            if self._saved is _TAKEN:
                raise GradError(
                    "backward: saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function; keep what it "
                    "gave in a name, or leave the setting out"
                )
            saved, self._saved = self._saved, _TAKEN
            return tuple([None if s is None else s.unpacked(self._node()) for s in saved])
        return tuple([None if s is None else s.unpacked(self._node()) for s in self._saved])


_TAKEN: Any = (None,)  # in the place of what a Function saved and gave away


class FunctionNode(Node):
    """The node of a user's Function: calls its `backward` on tensors. What the context holds can be read from it, too."""

    __slots__ = ("context", "function", "likes")

    def __init__(
        self, function: type[Function], context: FunctionCtx, op: _FunctionOp, edges: tuple[Any, ...], meta: Any, likes: Any
    ) -> None:
        super().__init__(op, edges, None, None, None, meta)
        self.function = function
        self.context = context
        self.likes = likes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "context":  # not there yet while the slots are filled: asking for it would come back here
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.context, name)

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    def free(self) -> None:
        self.context._freed = True
        self.context._saved = ()

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        before, state.enabled = state.enabled, False  # as no_grad() does
        try:
            wrapped = nodes.wrap_gradient(g if type(g) is tuple else (g,))
            return tuple([None if x is None else x._array for x in self._backward(wrapped)])
        finally:
            state.enabled = before

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return self._backward(g if type(g) is tuple else (g,))

    def _backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.context.materialize_grads and (len(grads) > 1 or grads[0] is None):
            grads = tuple(_zeros(like) if g is None else g for g, like in zip(grads, self.likes, strict=True))
        out = pulled(self.function, self.context, grads)
        out = out if isinstance(out, tuple) else (out,)
        n = len(self.edges)
        if len(out) < n or any(x is not None for x in out[n:]):  # PyTorch lets a backward return more, as long as it is None
            raise GradError(
                f"{self.name()}: backward returned {len(out)} gradients for {n} inputs; return one per argument of forward, None where there is none"
            )
        return tuple([None if x is None else self._fitted(i, x) for i, x in enumerate(out[:n])])

    def _fitted(self, i: int, x: Any) -> Any:
        """The gradient that backward returned for input i, checked, and of the input's shape and dtype."""
        if not hasattr(x, "_array"):
            raise TypeError(f"{self.name()}: backward returned a {type(x).__name__} for input {i}; return a tensor or None")
        assert self.meta is not None
        like = self.meta[i]
        if like is None:
            raise GradError(f"{self.name()}: backward returned a gradient for input {i}, which is not a tensor; return None there")
        if self.edges[i] is None:  # computed for an input that asks for none, which PyTorch drops as well
            return None
        shape, dtype, device = like
        have = tuple(x._array.shape)
        if have != shape:
            lead = len(have) - len(shape)
            if lead < 0 or any(m not in (1, n) for m, n in zip(shape, have[lead:], strict=True)):
                raise ShapeError(
                    f"{self.name()}: backward returned a gradient of shape {have} for input {i} of shape {shape}; it must have that shape, or sum to it"
                )
            x = sum_to(x, shape)
        if x.device != device:
            raise GradError(f"{self.name()}: backward returned a gradient on {x.device} for input {i} on {device}; move it with .to(...)")
        return x if x._array.dtype == dtype else ops.cast(x, dtype=dtype)


def _like(t: Any) -> Any:
    """Shape, dtype and device of a tensor, None for anything else."""
    if not hasattr(t, "_array"):
        return None
    array = t._array
    return array.shape, array.dtype, cpu if type(array) is np.ndarray else t.device


def _zeros(like: Any) -> Any:
    if like is None:
        return None
    shape, dtype, device = like
    return ops.full(shape=shape, value=0, dtype=dtype, device=device)


def pulled(cls: type[Function], ctx: Any, grads: tuple[Any, ...]) -> Any:
    """What a Function's backward makes of gradients: one by one, or as the list that it may take them out of."""
    backward = _backward_of(cls)
    return backward(ctx, list(grads)) if cls.boxed_grads_call else backward(ctx, *grads)


def _backward_of(cls: type[Function]) -> Callable[..., Any]:
    """What a Function calls its backward."""
    if cls.vjp is Function.vjp:
        return cls.backward
    if cls.backward is not Function.backward:
        raise GradError(
            f"{cls.__name__}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed: they are two names for one; leave one of them out"
        )
    return cls.vjp


class Function(FunctionCtx):
    """Subclass with static `forward(ctx, *args)` and `backward(ctx, *grads)`; call as `MyFunction.apply(*args)`.

    Backward is differentiable again where it is written in tensor operations. `forward(*args)` beside `setup_context(ctx, inputs, output)` works, too.

    >>> class Cube(tt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 3 * ctx.saved_tensors[0] ** 2 * g
    >>> x = tt.tensor(2.0, requires_grad=True)
    >>> tt.autograd.grad(Cube.apply(x), x)
    (tensor(12.),)
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The values: `forward(ctx, *args)`, or `forward(*args)` beside a setup_context; a subclass defines it."""
        raise NotImplementedError("Function: define a static forward(ctx, *args)")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """The gradients of the arguments, one for each (None for what has none), from those of the outputs; a subclass defines it."""
        raise NotImplementedError("Function: define a static backward(ctx, *grads) to differentiate through it")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> Any:
        """What is left for backward, where forward takes no ctx."""
        raise NotImplementedError("Function: define a static setup_context(ctx, inputs, output), and forward without ctx")

    @staticmethod
    def vjp(ctx: FunctionCtx, *grads: Any) -> Any:
        """Another name for `backward`; a class defines one of the two."""
        raise NotImplementedError("Function: define a static backward(ctx, *grads), or vjp, to differentiate through it")

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """Forward mode: the tangents of the outputs, given those of the inputs (None where there is none). Forward mode calls it."""
        raise NotImplementedError("Function: define a static jvp(ctx, *tangents) for forward-mode derivatives")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """What func.vmap calls in place of forward: returns (output, out_dims). Or set generate_vmap_rule = True in the class."""
        raise NotImplementedError("Function: define a static vmap(info, in_dims, *args), or set generate_vmap_rule = True")

    generate_vmap_rule = False
    boxed_grads_call = False  # whether backward(ctx, grads) takes one list, out of which it may take gradients to free them
    clear_saved_tensors_on_access = (
        False  # whether ctx.saved_tensors gives them away: they are freed with the names that backward has for them
    )

    def __init__(self) -> None:
        warnings.warn(
            f"{type(self).__name__}: a Function should not be instantiated: its methods are static, call {type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise GradError(
            f"{name}: an object of it was called, as PyTorch's oldest functions were; make forward and backward static and call {name}.apply(...)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording, and leave one node whose gradient is `backward`.

        Backward returns a gradient for each argument in the order of forward's, those by keyword among them; `setup_context` sees all of
        forward's, with their defaults. An input that forward returns comes out as a view of it. Raises GradError for a leaf marked dirty,
        TypeError for what cannot be saved.
        """
        split = cls.setup_context is not Function.setup_context
        if kwargs or (split and len(args) < getattr(getattr(cls.forward, "__code__", None), "co_argcount", 0)):
            args, kwargs = _in_places(cls.forward, split, args, kwargs)
        if running.levels and any([type(getattr(a, "_array", None)) is WrappedArray for a in args]):
            return transform.current.apply_function(cls, args, kwargs)
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple([getattr(a, "_tracked", False) for a in args])
        if cls.clear_saved_tensors_on_access:
            ctx._once = True
        before, state.enabled = state.enabled, False  # as no_grad() does
        try:
            if split:
                out = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, out)
            else:
                out = cls.forward(ctx, *args, **kwargs)
        finally:
            state.enabled = before
        for i, t in enumerate(ctx.to_save):
            if t is not None and not hasattr(t, "_array"):
                raise TypeError(
                    f"{cls.__name__}: save_for_backward got a {type(t).__name__} at place {i}; keep what is no tensor as an attribute of ctx"
                )
        return _finish(cls, ctx, args, out)


def _in_places(
    forward: Callable[..., Any], split: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by keyword among those by place; with `split`, where forward takes no ctx, defaults as well."""
    signature = inspect.signature(forward)
    bound = signature.bind(*args, **kwargs) if split else signature.bind(None, *args, **kwargs)
    by_place = [k for k, p in signature.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    # setup_context counts its inputs by place.
    if split or any(k in by_place for k in bound.kwargs):  # an argument by keyword behind one that was left out
        bound.apply_defaults()
    return (bound.args if split else bound.args[1:]), dict(bound.kwargs)


def _finish(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], out: Any) -> Any:
    """Count the writes of a Function and wire its outputs into the graph."""
    many = isinstance(out, tuple)
    outs = out if many else (out,)
    dirty = ctx.dirty_tensors
    for t in dirty:
        if not _holds(args, t):
            warnings.warn(
                f"{cls.__name__}: mark_dirty got a tensor that is no input; only inputs that forward wrote are dirty", stacklevel=3
            )
        elif not _holds(outs, t):
            raise GradError(f"{cls.__name__}: an input marked dirty was not returned; a tensor written in place must be an output")
        else:
            nodes.refuse_dirty(t, cls.__name__)
            version_of(t).bump(cls.__name__)
    if state.enabled and True in ctx.needs_input_grad:
        wired = _record(cls, ctx, args, outs)
    else:
        wired = [_seen(t, args, dirty) for t in outs]
    for name in ("to_save", "dirty_tensors", "non_differentiable"):  # outputs among them would hold the node that holds the context
        ctx.__dict__.pop(name, None)
    return tuple(wired) if many else wired[0]


def _seen(t: Any, args: tuple[Any, ...], dirty: tuple[Any, ...]) -> Any:
    """An output that is an input as it came is a view of it."""
    return nodes.view_of(t) if _holds(args, t) and hasattr(t, "_array") and not _holds(dirty, t) else t


def _holds(among: tuple[Any, ...], t: Any) -> bool:
    """Whether t itself is there; `in` would compare tensors by their elements."""
    for x in among:  # noqa: SIM110  # sooner than any() for the few that there are
        if x is t:
            return True
    return False


def _record(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], outs: tuple[Any, ...]) -> list[Any]:
    """The outputs, hung at a new node."""
    op = _function_op(cls.__name__, len(args), len(outs))
    edges = tuple([edge_of(a) if need else None for a, need in zip(args, ctx.needs_input_grad, strict=True)])
    node = FunctionNode(cls, ctx, op, edges, tuple([_like(a) for a in args]), tuple([_like(t) for t in outs]))
    ctx._node = weakref.ref(node)  # an output that was saved gets back to its node
    if state.watch is not None:
        state.watch(node)
    if len(outs) == 1 and not ctx.dirty_tensors and not ctx.non_differentiable:
        t = outs[0]
        if hasattr(t, "_array") and has_gradient(t._array.dtype):
            made = nodes.hang_result(_seen(t, args, ()), node, False)
            ctx._saved = tuple([None if s is None else Saved(s, 0 if s is made else None) for s in ctx.to_save])
            return [made]
    differentiable = [hasattr(t, "_array") and has_gradient(t._array.dtype) and not _holds(ctx.non_differentiable, t) for t in outs]
    several = sum(differentiable) > 1
    places: dict[int, int] = {}
    wired: list[Any] = []
    for i, (t, yes) in enumerate(zip(outs, differentiable, strict=True)):
        edge = node if len(outs) == 1 else Branch(node, i)
        if not yes:
            plain = _seen(t, args, ctx.dirty_tensors)  # an integer output, or one that was marked
            wired.append(plain.detach() if hasattr(plain, "_array") and plain._tracked else plain)
        elif _holds(ctx.dirty_tensors, t) and _holds(args, t):
            nodes.hang_written(t, edge, cls.__name__)
            wired.append(t)
        else:
            wired.append(nodes.hang_result(_seen(t, args, ()), edge, several))
        for place, s in enumerate(ctx.to_save):
            if s is wired[-1] and yes:
                places[place] = i
    ctx._saved = tuple([None if s is None else Saved(s, places.get(place)) for place, s in enumerate(ctx.to_save)])
    return wired


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a Function's backward that is no tensor operation: it runs unrecorded, and differentiating its result raises."""

    @functools.wraps(fn)
    def call(ctx: FunctionCtx, *grads: Any) -> Any:
        with no_grad():
            out = fn(ctx, *grads)
        if not state.enabled or not any(getattr(g, "_tracked", False) for g in grads):
            return out
        given = out if isinstance(out, tuple) else (out,)
        wired = tuple([_Once.apply(t.detach().requires_grad_()) if hasattr(t, "_array") else t for t in given])
        return wired if isinstance(out, tuple) else wired[0]

    return call


class _Once(Function):
    """Stands behind the gradients of a backward that can be used once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        raise GradError("backward: this Function's backward is marked once_differentiable, so its gradients have no gradients of their own")
