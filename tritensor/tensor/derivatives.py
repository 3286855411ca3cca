"""Results that hang in the graph of what they have no slope by: their derivative is zero, or none that anybody knows."""

from __future__ import annotations

import functools
from typing import Any

from tritensor.autograd.engine import is_followed
from tritensor.autograd.function import Function
from tritensor.autograd.names import camel
from tritensor.ground.errors import NoDerivativeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class _Constant(Function):
    """What was computed of some tensors, as it is; its gradient is its own alone, that by the tensors 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, by: str, y: Tensor, *xs: Tensor) -> Tensor:  # type: ignore[override]
        return y.detach()  # which shares y's counter of writes: a node may have saved it

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.name, ctx.by = inputs[:2]
        ctx.likes = [(tuple(x._array.shape), x._array.dtype, x.device) for x in inputs[3:]]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return None, None, g, *[ops.full(shape=shape, value=0, dtype=dtype, device=device) for shape, dtype, device in ctx.likes]

    @staticmethod
    def jvp(ctx: Any, name: None, by: None, y: Tensor, *xs: Tensor) -> Any:  # type: ignore[override]
        return y


class _NoDerivative(_Constant):
    """The same with gradients by the tensors that nobody knows."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        raise _no_derivative_error(ctx)

    @staticmethod
    def jvp(ctx: Any, name: None, by: None, y: Tensor, *xs: Tensor) -> Any:  # type: ignore[override]
        raise _no_derivative_error(ctx)


def _no_derivative_error(ctx: Any) -> NoDerivativeError:
    return NoDerivativeError(f"{ctx.name}: there is no derivative{ctx.by}; give it a detached tensor (x.detach())")


@functools.cache
def _renamed_function(kind: type[_Constant], name: str) -> type[_Constant]:
    """The Function that the graph shows by the name of what was called."""
    return type(camel(name), (kind,), {"__module__": __name__, "__doc__": kind.__doc__})


def _apply_function(kind: type[_Constant], name: str, by: str, y: Tensor, xs: tuple[Any, ...]) -> Tensor:
    # Outside the graph nothing may be recorded, or the result would claim to require grad.
    given = [x for x in xs if isinstance(x, Tensor) and is_followed(x)]
    return _renamed_function(kind, name).apply(name, by, y, *given) if given else y  # type: ignore[arg-type]


def make_constant(name: str, y: Tensor, *xs: Any) -> Tensor:
    """y, whose gradient by those of `xs` that a derivative follows is 0."""
    return _apply_function(_Constant, name, "", y, xs)


def refuse_derivative(name: str, y: Tensor, *xs: Any, by: str = "") -> Tensor:
    """y, which raises NoDerivativeError when a derivative by one of `xs` is asked of it; `by` says which that is, where y has others."""
    # Nothing else contributes a gradient: the one node that raises is enough.
    if not is_followed(y):
        return _apply_function(_NoDerivative, name, by, y, xs)
    nothing = ops.full(shape=(), value=-0.0, dtype=y._array.dtype, device=y.device)  # which changes no number, -0.0 neither
    barrier = _apply_function(_NoDerivative, name, by, nothing, xs)
    return y if barrier is nothing else ops.add(y, barrier)  # a sum, so that the others can be had alone
