"""autograd.Function: a user's own forward and backward, with the context object that PyTorch passes to both."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import edge_of, sum_to
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.node import Branch, Node, Version, version_of
from tritensor.errors import GradError, ShapeError
from tritensor.table import ops


class _FunctionOp:
    """Stands in a node's `op` for a user's Function: name, and how many outputs."""

    __slots__ = ("broadcasts", "inputs", "name", "outputs", "public")

    def __init__(self, name: str, inputs: int, public: int) -> None:
        self.name = name
        self.inputs = tuple(f"input {i}" for i in range(inputs))
        self.outputs = tuple(f"output {i}" for i in range(public))
        self.public = public
        self.broadcasts = True


class Context:
    """What `forward` leaves for `backward`: `save_for_backward(...)`, any attribute, and `needs_input_grad`."""

    def __init__(self) -> None:
        self.to_save: tuple[Any, ...] = ()  # until forward is over
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: tuple[_Saved | None, ...] = ()
        self._node: Callable[[], Any] = _nothing  # a weak reference: the node holds the context
        self._freed = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or intermediate ones; None is allowed) for backward, guarded against in-place writes."""
        self.to_save = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """These outputs get no gradient."""
        self.non_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """These inputs were written in place, and are returned."""
        self.dirty_tensors = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward receives zeros (the default) or None for an output that got no gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept by save_for_backward. Raises GradError where one was written since, and once the graph was freed."""
        if self._freed:
            raise GradError(
                "backward: the graph through this Function was freed by an earlier backward; call that one with retain_graph=True"
            )
        return tuple([None if s is None else s.unpacked(self._node()) for s in self._saved])


def _nothing() -> None:
    """No node yet."""


class _Saved:
    """A tensor that a Function saved, as it was when forward ended.

    An own output is kept as a bare array, because output -> node -> output would be a cycle; it gets its place in the graph back.
    """

    __slots__ = ("computed", "output", "seen", "tensor", "version")

    def __init__(self, t: Any, output: int | None) -> None:
        self.output = output
        self.computed = output is None and t.node is not None
        self.version: Version | None = version_of(t) if output is not None else t.version
        self.seen = 0 if self.version is None else self.version.value
        self.tensor = t if output is None else nodes.make_tensor(t.array)

    def unpacked(self, node: Any) -> Any:
        version = self.tensor.version if self.output is None else self.version
        if version is not None and version.value != self.seen:
            raise GradError(
                f"backward: a saved tensor of shape {tuple(self.tensor.array.shape)} was overwritten in place by {version.writer} "
                f"(version {version.value}, saved at {self.seen}); clone() it before the write"
            )
        if self.computed and self.tensor.node is None:
            raise nodes.detached("a Function", f"a tensor of shape {tuple(self.tensor.array.shape)}")
        if self.output is None:
            return self.tensor
        if node is None:
            return self.tensor
        made = nodes.make_output(self.tensor.array, node if node.op.public == 1 else Branch(node, self.output))
        made.version = version
        return made


class FunctionNode(Node):
    """The node of a user's Function: calls its `backward` on tensors. What the context holds can be read from it, too."""

    __slots__ = ("context", "function", "likes")

    def __init__(self, function: type[Function], context: Context, op: _FunctionOp, edges: tuple[Any, ...], meta: Any, likes: Any) -> None:
        super().__init__(op, edges, None, None, None, meta)
        self.function = function
        self.context = context
        self.likes = likes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "context":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.context, name)

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    def free(self) -> None:
        self.context._freed = True
        self.context._saved = ()

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with no_grad():
            wrapped = tuple(None if x is None else nodes.make_tensor(nodes.as_array(x)) for x in (g if type(g) is tuple else (g,)))
            return tuple([None if x is None else x.array for x in self._backward(wrapped)])

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return self._backward(g if type(g) is tuple else (g,))

    def _backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.context.materialize_grads:
            grads = tuple(_zeros(like) if g is None else g for g, like in zip(grads, self.likes, strict=True))
        out = self.function.backward(self.context, *grads)
        out = out if isinstance(out, tuple) else (out,)
        n = len(self.edges)
        if len(out) < n or any(x is not None for x in out[n:]):
            raise GradError(
                f"{self.name()}: backward returned {len(out)} gradients for {n} inputs; return one per argument of forward, None where there is none"
            )
        return tuple([None if x is None else self._fitted(i, x) for i, x in enumerate(out[:n])])

    def _fitted(self, i: int, x: Any) -> Any:
        """The gradient that backward returned for input i, checked, and of the input's shape and dtype."""
        if not hasattr(x, "array"):
            raise TypeError(f"{self.name()}: backward returned a {type(x).__name__} for input {i}; return a tensor or None")
        assert self.meta is not None
        like = self.meta[i]
        if like is None:
            raise GradError(f"{self.name()}: backward returned a gradient for input {i}, which is not a tensor; return None there")
        if self.edges[i] is None:
            return None
        shape, dtype, device = like
        have = tuple(x.array.shape)
        if have != shape:
            lead = len(have) - len(shape)
            if lead < 0 or any(m not in (1, n) for m, n in zip(shape, have[lead:], strict=True)):
                raise ShapeError(
                    f"{self.name()}: backward returned a gradient of shape {have} for input {i} of shape {shape}; it must have that shape, or sum to it"
                )
            x = sum_to(x, shape)
        if x.device != device:
            raise GradError(f"{self.name()}: backward returned a gradient on {x.device} for input {i} on {device}; move it with .to(...)")
        return x if x.array.dtype == dtype else ops.cast(x, dtype=dtype)


def _like(t: Any) -> Any:
    """Shape, dtype and device of a tensor, None for anything else."""
    return (t.array.shape, t.array.dtype, t.device) if hasattr(t, "array") else None


def _zeros(like: Any) -> Any:
    if like is None:
        return None
    shape, dtype, device = like
    return ops.full(shape=shape, value=0, dtype=dtype, device=device)


class Function:
    """Subclass with static `forward(ctx, *args)` and `backward(ctx, *grads)`; call as `MyFunction.apply(*args)`.

    Backward is differentiable again when it is written in tensor operations. The other form, `forward(*args)` with
    `setup_context(ctx, inputs, output)`, works too.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Function: define a static forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        raise NotImplementedError("Function: define a static backward(ctx, *grads) to differentiate through it")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording, and leave one node whose gradient is `backward`.

        An input that forward returns comes out as a view of it. Raises GradError for a leaf marked dirty, TypeError for what cannot be saved.
        """
        ctx = Context()
        ctx.needs_input_grad = tuple([getattr(a, "tracked", False) for a in args])
        with no_grad():
            if "setup_context" in cls.__dict__ or any("setup_context" in b.__dict__ for b in cls.__mro__[:-2]):
                out = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, out)  # type: ignore[attr-defined]
            else:
                out = cls.forward(ctx, *args, **kwargs)
        for i, t in enumerate(ctx.to_save):
            if t is not None and not hasattr(t, "array"):
                raise TypeError(
                    f"{cls.__name__}: save_for_backward got a {type(t).__name__} at place {i}; keep what is no tensor as an attribute of ctx"
                )
        return _finish(cls, ctx, args, out)


def _finish(cls: type[Function], ctx: Context, args: tuple[Any, ...], out: Any) -> Any:
    """Count the writes of a Function and wire its outputs into the graph."""
    many = isinstance(out, tuple)
    outs = out if many else (out,)
    dirty = ctx.dirty_tensors
    for t in dirty:
        if not any(t is a for a in args):
            warnings.warn(
                f"{cls.__name__}: mark_dirty got a tensor that is no input; only inputs that forward wrote are dirty", stacklevel=3
            )
        elif not any(t is y for y in outs):
            raise GradError(f"{cls.__name__}: an input marked dirty was not returned; a tensor written in place must be an output")
        else:
            nodes.refuse_dirty(t, cls.__name__)
            version_of(t).bump(cls.__name__)
    if state.enabled and any(ctx.needs_input_grad):
        wired = _record(cls, ctx, args, outs)
    else:
        wired = [_seen(t, args, dirty) for t in outs]
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()  # outputs among them would hold the node that holds the context
    return tuple(wired) if many else wired[0]


def _seen(t: Any, args: tuple[Any, ...], dirty: tuple[Any, ...]) -> Any:
    """An output that is an input as it came is a view of it."""
    return nodes.view_of(t) if any(t is a for a in args) and hasattr(t, "array") and not any(t is d for d in dirty) else t


def _record(cls: type[Function], ctx: Context, args: tuple[Any, ...], outs: tuple[Any, ...]) -> list[Any]:
    """The outputs, hung at a new node."""
    op = _FunctionOp(cls.__name__, len(args), len(outs))
    edges = tuple([edge_of(a) if need else None for a, need in zip(args, ctx.needs_input_grad, strict=True)])
    node = FunctionNode(cls, ctx, op, edges, tuple([_like(a) for a in args]), tuple([_like(t) for t in outs]))
    ctx._node = weakref.ref(node)
    differentiable = [hasattr(t, "array") and t.is_floating_point() and not any(t is x for x in ctx.non_differentiable) for t in outs]
    several = sum(differentiable) > 1
    saved = list(ctx.to_save)
    places: dict[int, int] = {}
    wired: list[Any] = []
    for i, (t, yes) in enumerate(zip(outs, differentiable, strict=True)):
        edge = node if len(outs) == 1 else Branch(node, i)
        if not yes:
            plain = _seen(t, args, ctx.dirty_tensors)
            wired.append(plain.detach() if hasattr(plain, "array") and plain.tracked else plain)
        elif any(t is x for x in ctx.dirty_tensors) and any(t is a for a in args):
            nodes.hang_written(t, edge, cls.__name__)
            wired.append(t)
        else:
            wired.append(nodes.hang_result(_seen(t, args, ()), edge, several))
        for place, s in enumerate(saved):
            if s is wired[-1] and yes:
                places[place] = i
    ctx._saved = tuple([None if s is None else _Saved(s, places.get(place)) for place, s in enumerate(saved)])
    return wired


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a Function's backward that is no tensor operation: it runs unrecorded, and differentiating its result raises."""

    @functools.wraps(backward)
    def call(ctx: Context, *grads: Any) -> Any:
        with no_grad():
            out = backward(ctx, *grads)
        if not state.enabled or not any(getattr(g, "tracked", False) for g in grads):
            return out
        given = out if isinstance(out, tuple) else (out,)
        wired = tuple([_Once.apply(t.detach().requires_grad_()) if hasattr(t, "array") else t for t in given])
        return wired if isinstance(out, tuple) else wired[0]

    return call


class _Once(Function):
    """Stands behind the gradients of a backward that can be used once."""

    @staticmethod
    def forward(ctx: Context, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        raise GradError("backward: this Function's backward is marked once_differentiable, so its gradients have no gradients of their own")
