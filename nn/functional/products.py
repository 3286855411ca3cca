"""linear, linear_activation and bilinear: products with weights."""

from __future__ import annotations

from tritensor.autograd.modes import is_grad_enabled
from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.arguments import public_error
from tritensor.tensor.public_api.publish import checked, exported


@exported
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""
    try:
        if isinstance(weight, Tensor) and (weight.array.ndim == 1 or weight.array.dtype.kind in "biuc"):
            return _compose_single_output(input, weight, bias) if weight.array.ndim == 1 else _compose_linear(input, weight, bias)
        return ops.linear(input, weight, bias)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        raise public_error(linear, (input, weight, bias), error) from None


@checked
def linear_activation(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, residual: Tensor | None = None, *, activation: str = "none",
    scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """`activation(input @ weight.T + bias) * scale + residual` in one kernel, rounded once; PyTorch has it as functions one after the other.

    input (..., in), weight (out, in), bias (out,), residual (..., out) -> (..., out), all of one floating type.

    activation: "none", "relu", "gelu", "gelu_tanh" (`gelu(approximate="tanh")`), "silu", "sigmoid" or "tanh". For the gradient the
    activation's input is kept as well, of "relu", "sigmoid" and "tanh" without scale and residual only the result. Under autocast all goes
    down to its type, the residual too. Raises ShapeError, DTypeError, and ArgumentError for an activation that is none of these.

    >>> x, w = tt.tensor([[1.0, -2.0]]), tt.tensor([[1.0, 1.0], [1.0, 0.0]])
    >>> F.linear_activation(x, w, activation="relu")
    tensor([[0., 1.]])
    """
    if activation in ("relu", "sigmoid", "tanh") and residual is None and scale == 1:
        return ops.linear_activation_by_result(input, weight, bias, activation=activation)  # type: ignore[no-any-return]
    if activation in ("sigmoid", "tanh"):
        y = ops.linear_activation_by_result(input, weight, bias, activation=activation)
        y = y if scale == 1 else ops.mul(y, scale)
        return y if residual is None else ops.add(y, residual)  # type: ignore[no-any-return]
    keep = is_grad_enabled() and any(t is not None and t.requires_grad for t in (input, weight, bias, residual))
    return ops.linear_activation(input, weight, bias, residual, activation=activation, scale=float(scale), keep=keep)  # type: ignore[no-any-return]


def _compose_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Of integers and complex numbers, for which there is no kernel of product and sum."""
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: input {tuple(input.shape)}, weight {tuple(weight.shape)}: give (..., in) and (out, in)")
    y = ops.matmul(input, weight.t())
    return y if bias is None else ops.add(y, bias)


def _compose_single_output(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = ops.matmul(input, weight)
    if bias is None:
        return y
    if bias.ndim:
        raise ShapeError(f"linear: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: a weight of one output takes a bias of shape ()")
    return ops.add(y, bias)


@checked
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""
    given = f"bilinear: input1 {tuple(input1.shape)}, input2 {tuple(input2.shape)}, weight {tuple(weight.shape)}"
    if weight.ndim != 3 or not input1.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(f"{given}: give (..., n), (..., m) with the same leading sizes, and (out, n, m)")
    for k, x in enumerate((input1, input2), 1):
        if x.shape[-1] != weight.shape[k]:
            raise ShapeError(
                f"{given}: input{k}'s last size {x.shape[-1]} is not weight's {weight.shape[k]}; give input{k} (..., {weight.shape[k]})"
            )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ShapeError(f"{given}, bias {tuple(bias.shape)}: bias must have one value for each output, ({weight.shape[0]},)")
    left = ops.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight)  # (..., out, 1, m)
    y = ops.matmul(left, input2.unsqueeze(-1).unsqueeze(-3)).squeeze(-1).squeeze(-1)  # (..., out)
    return y if bias is None else ops.add(y, bias)
