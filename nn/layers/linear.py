"""Identity, Linear, LazyLinear and Bilinear; Flatten and Unflatten, which bring their inputs into shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.fusing import can_fuse_product
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, UninitializedParameter, empty_parameter
from tritensor.tensor.core import Tensor


class Identity(Module):
    """Returns its input; takes any arguments and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # so that it can stand for any layer
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """y = x @ weight.T + bias: (..., in_features) -> (..., out_features).

    weight (out, in) and bias (out) start uniform on +-1 / sqrt(in_features).

    >>> layer = nn.Linear(3, 2)
    >>> layer(tt.ones(5, 3)).shape
    tritensor.Size([5, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    weight: Parameter
    bias: Parameter | None
    _fuses, _fuses_of = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"), can_fuse_product

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        for what, n in (("in_features", in_features), ("out_features", out_features)):
            if not hasattr(n, "__index__"):  # numpy's integers are taken, floats and strings named here, and not by an array's constructor
                raise TypeError(f"Linear: {what} is a {type(n).__name__}; give an int")
        if in_features < 0 or out_features < 0:  # 0 is allowed, as in PyTorch: a layer without inputs gives its bias
            raise ShapeError(f"Linear: in_features {in_features} and out_features {out_features} must not be negative")
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty_parameter(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        reset_affine(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def _forward_with_activation(self, input: Tensor, activation: str) -> Tensor:
        """forward() and an activation in one kernel, for Sequential."""
        return F.linear_activation(input, self.weight, self.bias, activation=activation)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is the last size of the first input; it becomes a Linear then."""

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)  # of no features and no bias: nothing is drawn before the sizes are known
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the initial values anew, where the shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Make the parameters for an input (..., in_features)."""
        if not self.has_uninitialized_params():
            self.in_features = self.weight.shape[1]  # as a state_dict has brought it
            return
        with no_grad():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class Bilinear(Module):
    """y[k] = x1 @ weight[k] @ x2 + bias[k]: (..., in1), (..., in2) -> (..., out). Parameters start uniform on +-1 / sqrt(in1)."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ShapeError(f"Bilinear: in1_features {in1_features} must be greater than 0")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = empty_parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        bound = 1 / math.sqrt(self.in1_features)  # PyTorch goes by the first input alone
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset_affine(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's start for Linear and Conv2d: weight kaiming_uniform_ with a = sqrt(5), bias uniform, both on +-1 / sqrt(fan_in)."""
    if weight.numel():  # of no elements kaiming_uniform_ does nothing but warn
        init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.count_fans("reset_parameters", weight)
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0  # a layer of no inputs has zeros, not infinities, for biases
        init.uniform_(bias, -bound, bound)


class Flatten(Module):
    """Dimensions start_dim to end_dim as one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension `dim` split into sizes `unflattened_size`, of which one may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"Unflatten: dim {dim!r} must be an integer and unflattened_size {unflattened_size!r} a tuple of integers")
        self.dim, self.unflattened_size = dim, unflattened_size if isinstance(unflattened_size, tuple) else tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
