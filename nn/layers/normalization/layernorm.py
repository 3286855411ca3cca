"""LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm: normalisation that knows no batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.functional.normalization import mean_of_neighbours
from tritensor.nn.fusing import NORMALISED, can_fuse_norm
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.sequences import arange


class _Affine(Module):
    """A weight that starts at 1 and a bias that starts at 0, either of which may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_affine(self, shape: Sequence[int], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):  # None is registered, too: PyTorch's scripts ask `layer.bias is None`
            self.register_parameter(name, empty_parameter(*shape, device=device, dtype=dtype) if wanted else None)

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _to_sizes(normalized_shape: Any) -> tuple[int, ...]:
    one = one_integer(normalized_shape)
    return (one,) if isinstance(one, int) else tuple(one)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape` (Ba et al. 2016).

    weight starts at 1 and bias at 0, both of normalized_shape; elementwise_affine=False has neither, bias=False no bias.

    >>> nn.LayerNorm(4, elementwise_affine=False)(tt.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]  # noqa: RUF012  (PyTorch's is a list)

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _to_sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

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
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)  # eps None goes through: the function knows the input's type

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias over each of num_groups groups of num_channels channels, dimension 1 (Wu and He 2018).

    Raises ValueError where num_groups does not divide num_channels.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]  # noqa: RUF012  (PyTorch's is a list)
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
        self._make_affine((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def _forward_with_activation(self, input: Tensor, activation: str) -> Tensor:
        """forward() and an activation without what is between them in memory, for Sequential."""
        return F.group_norm_activation(input, self.num_groups, self.weight, self.bias, self.eps, activation=activation)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _ResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """x / (k + alpha mean(x^2))^beta, the mean over the `size` channels around each (Krizhevsky et al. 2012)."""

    __constants__ = ["size", "alpha", "beta", "k"]  # noqa: RUF012  (PyTorch's is a list)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """LocalResponseNorm of images as Torch 7 has it: (size - 1) // 2 channels on either side, their sum divided by size.

    The first channel counts for all channels whose window lies behind it, too, as in PyTorch, whose running sum never takes it off; the gradient is
    that of this formula, where PyTorch's is that of windows without it.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)  # an int, which the repr shows as one

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: expected input to be 4D, got {input.ndim}D instead; give (batch, channels, h, w)")
        if not input.numel():
            return input * 1  # a result of its own in the graph; there is no channel to add up
        half = (self.size + 1) // 2 - 1
        squares = input * input
        total = mean_of_neighbours(squares, half, half) * (2 * half + 1)
        behind = (arange(input.shape[1], device=input.device) > half).to(input.dtype).reshape(-1, 1, 1)
        total = total + squares[:, :1] * behind
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta
