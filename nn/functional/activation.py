"""Activations, softmax, dropout."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.dtypes import as_dtype
from tritensor.errors import ArgumentError
from tritensor.table import normal_dim, ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import dropout as _dropout
from tritensor.tensor.publishing.arguments import told
from tritensor.tensor.publishing.publish import checked


def _written(input: Tensor, y: Tensor, inplace: bool, name: str) -> Tensor:
    return overwrite(input, y, name) if inplace else y


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    try:
        return _written(input, ops.relu(input), True, "relu_") if inplace else ops.relu(input)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        raise told(relu, (input, inplace), error) from None


@checked
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""
    x = input.clone() if inplace else input  # its gradient needs the input as it was
    return _written(input, ops.leaky_relu(x, negative_slope=float(negative_slope)), inplace, "leaky_relu_")


@checked
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""
    return _written(input, ops.elu(input.clone() if inplace else input, alpha=float(alpha)), inplace, "elu_")


@checked
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu written over the input."""
    return leaky_relu(input, negative_slope, True)  # type: ignore[no-any-return]


@checked
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu written over the input."""
    return elu(input, alpha, True)  # type: ignore[no-any-return]


@checked
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself where beta x is above `threshold`."""
    return ops.softplus(input, beta=float(beta), threshold=float(threshold))


@checked
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is {approximate!r}; it is 'none' or 'tanh'")
    return ops.gelu(input, approximate=approximate)


@checked
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _written(input, ops.silu(input.clone() if inplace else input), inplace, "silu_")


@checked
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


@checked
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return ops.tanh(input)


@checked
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""
    y = _dropout(input, p, training)
    return _written(input, y, inplace and y is not input, "dropout_")


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"{name}: dim was not given; it is taken from the number of dimensions as in PyTorch; pass dim=", DeprecationWarning, stacklevel=3
    )
    return 0 if ndim in (0, 1, 3) else 1


@checked
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim; the input is cast to dtype first where one is given."""
    x = input if dtype is None else input.to(as_dtype(dtype))
    return ops.softmax(x, dim=normal_dim("softmax", _implicit_dim("softmax", x.ndim) if dim is None else dim, x.ndim))


@checked
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along dim, computed stably."""
    x = input if dtype is None else input.to(as_dtype(dtype))
    return ops.log_softmax(x, dim=normal_dim("log_softmax", _implicit_dim("log_softmax", x.ndim) if dim is None else dim, x.ndim))
