"""autograd.Function: a user's own forward and backward, with the context object that PyTorch passes to both."""

from __future__ import annotations

from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import edge_of
from tritensor.autograd.modes import enable_grad, no_grad, state
from tritensor.autograd.node import Branch, Node
from tritensor.errors import GradError


class _FunctionOp:
    """Stands in a node's `op` for a user's Function: name, and how many outputs."""

    __slots__ = ("broadcasts", "inputs", "name", "outputs", "public")

    def __init__(self, name: str, inputs: int, public: int) -> None:
        self.name = name
        self.inputs = tuple(f"input {i}" for i in range(inputs))
        self.outputs = tuple(f"output {i}" for i in range(public))
        self.public = public
        self.broadcasts = False


class Context:
    """What `forward` leaves for `backward`: `save_for_backward(...)`, any attribute, and `needs_input_grad`."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._versions: tuple[int, ...] = ()
        self._own_outputs: dict[int, int] = {}
        self._not_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._node: Any = None
        self._freed = False
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or intermediate ones; None is allowed) for backward, guarded against in-place writes."""
        self._saved = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """These outputs get no gradient."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """These inputs were written in place."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward receives zeros (the default) or None for an output that got no gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept by save_for_backward."""
        if self._freed:
            raise GradError(
                "backward: the graph through this Function was freed by an earlier backward; call that one with retain_graph=True"
            )
        for t, v in zip(self._saved, self._versions, strict=True):
            if t is not None and t.version is not None and t.version.value != v:
                raise GradError(
                    f"backward: a saved tensor of shape {tuple(t.shape)} was overwritten in place by {t.version.writer}; clone() it before the write"
                )
        # An output was saved as a bare array, to spare a cycle; give it its place in the graph back.
        out = list(self._saved)
        for place, index in self._own_outputs.items():
            out[place] = nodes.make_output(out[place].array, self._node if self._node.op.public == 1 else Branch(self._node, index))
        return tuple(out)


class FunctionNode(Node):
    """The node of a user's Function: calls its `backward` on tensors."""

    __slots__ = ("context", "function", "likes")

    def __init__(self, function: type[Function], context: Context, op: _FunctionOp, edges: tuple[Any, ...], meta: Any, likes: Any) -> None:
        super().__init__(op, edges, None, None, None, meta)
        self.function = function
        self.context = context
        self.likes = likes

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    def free(self) -> None:
        self.context._freed = True
        self.context._saved = self.context._versions = ()

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with no_grad():
            wrapped = tuple(None if x is None else nodes.make_tensor(nodes.as_array(x)) for x in (g if type(g) is tuple else (g,)))
            return tuple(None if x is None else x.array for x in self._backward(wrapped))

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
        return out[:n]


def _zeros(like: Any) -> Any:
    from tritensor.table import ops  # the floor above fills the table

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
        """Run forward without recording, and leave one node whose gradient is `backward`."""
        ctx = Context()
        needs = tuple(getattr(a, "tracked", False) for a in args)
        ctx.needs_input_grad = needs
        with no_grad():
            if "setup_context" in cls.__dict__ or any("setup_context" in b.__dict__ for b in cls.__mro__[:-2]):
                out = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, out)  # type: ignore[attr-defined]
            else:
                out = cls.forward(ctx, *args, **kwargs)
        return _record(cls, ctx, args, needs, out)


def _record(cls: type[Function], ctx: Context, args: tuple[Any, ...], needs: tuple[bool, ...], out: Any) -> Any:
    """Wire the outputs of a Function into the graph."""
    many = isinstance(out, tuple)
    outs = out if many else (out,)
    ctx._versions = tuple(t.version.value if t is not None and t.version is not None else 0 for t in ctx._saved)
    if not (state.enabled and any(needs)):
        return out
    op = _FunctionOp(cls.__name__, len(args), len(outs))
    meta = tuple((a.array.shape, a.array.dtype) if hasattr(a, "array") else None for a in args)
    likes = tuple((t.array.shape, t.array.dtype, t.device) if hasattr(t, "array") else None for t in outs)
    node = FunctionNode(cls, ctx, op, tuple(edge_of(a) if need else None for a, need in zip(args, needs, strict=True)), meta, likes)
    ctx._node = node
    wired: list[Any] = []
    for i, t in enumerate(outs):
        if not hasattr(t, "array") or any(t is x for x in ctx._not_differentiable):
            wired.append(t)
            continue
        for place, s in enumerate(ctx._saved):
            if s is t:
                ctx._own_outputs[place] = i
        edge = node if len(outs) == 1 else Branch(node, i)
        if any(t is x for x in ctx._dirty):
            t.node, t.tracked = edge, True
            wired.append(t)
        else:  # also an input returned as it is becomes a tensor of its own
            wired.append(nodes.make_output(t.array, edge))
    saved = list(ctx._saved)
    for place in ctx._own_outputs:
        saved[place] = nodes.make_tensor(saved[place].array)
    ctx._saved = tuple(saved)
    return tuple(wired) if many else wired[0]
