"""Dropout and LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor


class Dropout(Module):
    """In training, zero each element with probability p and scale the rest by 1 / (1 - p); in evaluation, nothing."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: dropout probability has to be between 0 and 1, but got {p}; give such a p")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`.

    weight starts at 1 and bias at 0, both of normalized_shape; elementwise_affine=False has neither, bias=False no bias.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, empty_parameter(*self.normalized_shape, device=device, dtype=dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
