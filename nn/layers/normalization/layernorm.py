"""LayerNorm, RMSNorm and GroupNorm: normalisation that knows no batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.fusing import NORMALISED, can_fuse_norm
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor


def _to_sizes(normalized_shape: Any) -> tuple[int, ...]:
    one = one_integer(normalized_shape)
    return (one,) if isinstance(one, int) else tuple(one)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape` (Ba et al. 2016).

    weight starts at 1 and bias at 0, both of normalized_shape; elementwise_affine=False has neither, bias=False no bias.

    >>> nn.LayerNorm(4, elementwise_affine=False)(tt.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]  # noqa: RUF012  (PyTorch's is a list)
    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _to_sizes(normalized_shape)
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

    def _forward_of_sum(self, input: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """forward() of a sum, and the sum, in one kernel."""
        return F.add_layer_norm(input, residual, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions `normalized_shape` (Zhang and Sennrich 2019).

    weight starts at 1; elementwise_affine=False has none. eps=None: that of the input's type.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]  # noqa: RUF012  (PyTorch's is a list)
    weight: Parameter | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _to_sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = empty_parameter(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over each of num_groups groups of num_channels channels, dimension 1 (Wu and He 2018).

    Raises ValueError where num_groups does not divide num_channels.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]  # noqa: RUF012  (PyTorch's is a list)
    weight: Parameter | None
    bias: Parameter | None
    _fuses, _fuses_of = NORMALISED, can_fuse_norm

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: num_channels must be divisible by num_groups; {num_groups} groups do not share {num_channels} channels evenly"
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty_parameter(num_channels, device=device, dtype=dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def _forward_then(self, input: Tensor, activation: str) -> Tensor:
        """forward() and an activation without what is between them in memory, for Sequential."""
        return F.group_norm_activation(input, self.num_groups, self.weight, self.bias, self.eps, activation=activation)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
