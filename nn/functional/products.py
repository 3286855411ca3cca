"""linear and bilinear: products with weights."""

from __future__ import annotations

from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.arguments import told
from tritensor.tensor.publishing.publish import checked


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""
    try:
        if isinstance(weight, Tensor) and weight.array.ndim == 1:
            return _one_output(input, weight, bias)
        return ops.linear(input, weight, bias)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        raise told(linear, (input, weight, bias), error) from None


def _one_output(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = ops.matmul(input, weight)
    if bias is None:
        return y
    if bias.ndim:
        raise ShapeError(f"linear: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: a weight of one output takes a bias of shape ()")
    return ops.add(y, bias)


@checked
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""
    left = ops.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight)  # (..., out, 1, m)
    y = ops.matmul(left, input2.unsqueeze(-1).unsqueeze(-3)).squeeze(-1).squeeze(-1)  # (..., out)
    return y if bias is None else ops.add(y, bias)
