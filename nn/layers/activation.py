"""Activations: of each element alone, and along a dim (Softmax and its kin)."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.ground.errors import AssertedArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor


class _Activation(Module):
    """An activation whose repr shows the settings that `_shown` names, and `inplace` where it is set, as PyTorch's do."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        said = [f"{name}={getattr(self, name)}" for name in self._shown]
        # no class attribute: tools set `inplace` of whatever has one, and Softmax or PReLU must not seem to
        return ", ".join([*said, "inplace=True"] if self.__dict__.get("inplace") else said)


class _InPlaceActivation(_Activation):
    """An activation whose one setting is whether it is written over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_InPlaceActivation):
    """max(x, 0)."""

    _named = "relu"  # by which a GPU's kernel of the layer before takes it along: see fusing.py

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class LeakyReLU(_Activation):
    """x where positive, else negative_slope * x."""

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class PReLU(_Activation):
    """x where positive, else weight * x: weight is learned, one number, or one for each of num_parameters channels; all start at `init`."""

    _shown = ("num_parameters",)
    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init  # kept for reset_parameters; inside the methods `init` is the module
        self.weight = empty_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights at the first value again."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)  # a weight of one number broadcasts over all channels


class RReLU(_Activation):
    """x where positive, else a x: a is drawn from [lower, upper) in training, halfway between in evaluation."""

    _shown = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        # in evaluation no number is drawn, so that a seed goes on alike
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class _AlphaActivation(_Activation):
    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class ELU(_AlphaActivation):
    """x where positive, else alpha * (exp(x) - 1)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_AlphaActivation):
    """x where positive, else alpha * (exp(x / alpha) - 1)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlaceActivation):
    """1.0507 x where positive, else 1.7581 (exp(x) - 1)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardtanh(_Activation):
    """x held between min_val and max_val. min_value and max_value are their old names."""

    _shown: tuple[str, ...] = ("min_val", "max_val")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None, max_value: float | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        for old, new, given in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if given is not None:  # the old names win, as in PyTorch
                warnings.warn(f"Hardtanh: {old} is deprecated; give {new}", FutureWarning, stacklevel=2)
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if not min_val < max_val:  # the function lets both be one number; PyTorch's module asserts that they differ
            raise AssertedArgumentError(f"Hardtanh: min_val is {min_val}, max_val {max_val}; give min_val < max_val")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    _shown = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class _QuietInPlace(_InPlaceActivation):
    def extra_repr(self) -> str:
        return ""  # PyTorch's reprs of these do not say that they are in place


class Hardsigmoid(_QuietInPlace):
    """min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_QuietInPlace):
    """x min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Threshold(_Activation):
    """x where it is above the threshold, else the value."""

    _shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class _LambdActivation(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_LambdActivation):
    """0 where |x| <= lambd, else x."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_LambdActivation):
    """x - lambd above lambd, x + lambd below -lambd, else 0."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softplus(_Activation):
    """log(1 + exp(beta x)) / beta."""

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function, or its approximation by tanh."""

    @property
    def _named(self) -> str:
        return "gelu_tanh" if self.approximate == "tanh" else "gelu"  # kernels know the two by these names

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)  # checked in the call, as in PyTorch: a wrong word is no error of the constructor's

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlaceActivation):
    """x * sigmoid(x)."""

    _named = "silu"

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlaceActivation):
    """x tanh(log(1 + exp(x)))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class _DimActivation(_Activation):
    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim  # None: chosen by the input's dimensions in each call, with a warning, as PyTorch goes on to do


class GLU(_DimActivation):
    """a sigmoid(b), a and b the halves of the input along dim."""

    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(_DimActivation):
    """exp(x) / sum(exp(x)) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(_DimActivation):
    """softmax(-x) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(_DimActivation):
    """log(softmax(x)) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """softmax over the channels of (batch, channels, height, width), or of (channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ShapeError(
                f"Softmax2d: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, height, width) or (channels, height, width)"
            )
        return F.softmax(input, -3)  # the channels, whether there is a batch or not


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    _named = "sigmoid"

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x)), without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent."""

    _named = "tanh"

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)
