"""Layers that vision networks are made of: a batch norm that is frozen, convolutions with norm and activation, squeeze-and-excitation, a perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import ones, zeros

Layer = Callable[..., nn.Module]


class FrozenBatchNorm2d(nn.Module):
    """Batch norm of images (n, num_features, h, w) by statistics, scale and shift that are buffers, and stay as they are loaded."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", ones(num_features))
        self.register_buffer("bias", zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        state_dict.pop(prefix + "num_batches_tracked", None)  # of the BatchNorm2d that was saved; nothing is counted here
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


def _as_sizes(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation, each of the last two only where one is given.

    Args:
        padding: where it is not given, as much as keeps the size at stride 1.
        bias: of the convolution; where it is not given, only without a norm.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1, padding: Any = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d, activation_layer: Layer | None = nn.ReLU, dilation: Any = 1, inplace: bool | None = True,
        bias: bool | None = None, conv_layer: Layer = nn.Conv2d,
    ) -> None:  # fmt: skip
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                count = len(kernel_size) if isinstance(kernel_size, Sequence) else len(dilation)
                sizes = zip(_as_sizes(kernel_size, count), _as_sizes(dilation, count), strict=True)
                padding = tuple((k - 1) // 2 * d for k, d in sizes)
        if bias is None:
            bias = norm_layer is None
        layers = [conv_layer(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """A Conv2d, a norm and an activation; see ConvNormActivation."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1, padding: Any = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d, activation_layer: Layer | None = nn.ReLU, dilation: Any = 1, inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups,
            norm_layer,
            activation_layer,
            dilation,
            inplace,
            bias,
            nn.Conv2d,
        )


class Conv3dNormActivation(ConvNormActivation):
    """A Conv3d, a norm and an activation; see ConvNormActivation."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1, padding: Any = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm3d, activation_layer: Layer | None = nn.ReLU, dilation: Any = 1, inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups,
            norm_layer,
            activation_layer,
            dilation,
            inplace,
            bias,
            nn.Conv3d,
        )


class SqueezeExcitation(nn.Module):
    """Channels scaled by what a small network makes of their means (Hu et al. 2018): images (n, input_channels, h, w) to the same shape."""

    def __init__(
        self, input_channels: int, squeeze_channels: int, activation: Layer = nn.ReLU, scale_activation: Layer = nn.Sigmoid
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        scale = self.activation(self.fc1(self.avgpool(input)))  # (n, squeeze_channels, 1, 1)
        return self.scale_activation(self.fc2(scale)) * input  # type: ignore[no-any-return]


class MLP(nn.Sequential):
    """Linear layers (..., in_channels) to (..., hidden_channels[-1]), each with a norm, an activation and dropout behind it, the last with dropout alone."""

    def __init__(
        self, in_channels: int, hidden_channels: list[int], norm_layer: Layer | None = None, activation_layer: Layer | None = nn.ReLU,
        inplace: bool | None = None, bias: bool = True, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        if not hidden_channels:
            raise ArgumentError("MLP: hidden_channels is empty; give the width of each layer")
        settings = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for width in hidden_channels[:-1]:
            layers.append(nn.Linear(in_channels, width, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(width))
            if activation_layer is not None:
                layers.append(activation_layer(**settings))
            layers.append(nn.Dropout(dropout, **settings))
            in_channels = width
        layers += [nn.Linear(in_channels, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **settings)]
        super().__init__(*layers)


class Permute(nn.Module):
    """Dimensions in another order, `x.permute(dims)`, as a layer."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*self.dims)
