"""Activations by the names that fused ops take: each one's op, formula and gradient, for kernels, numpy and Tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.errors import ArgumentError
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.elementwise import backward_of
from tritensor.kernels.parts.formula_llvm import numpy_gradient
from tritensor.kernels.parts.formulas import activations as formulas
from tritensor.ops.table import registry


class Activation(NamedTuple):
    """An activation's op with its attributes; its formula, of z, and its gradient's, of g and z, or of g and the result."""

    op: str
    attrs: dict[str, Any]
    formula: Any
    gradient: Any


BY_INPUT = {
    "relu": Activation("relu", {}, formulas.relu, formulas.relu_grad),
    "gelu": Activation("gelu", {"approximate": "none"}, formulas.gelu, formulas.gelu_grad),
    "gelu_tanh": Activation("gelu", {"approximate": "tanh"}, formulas.gelu_tanh, formulas.gelu_tanh_grad),
    "silu": Activation("silu", {}, formulas.silu, formulas.silu_grad),
}
BY_RESULT = {
    "relu": BY_INPUT["relu"],  # the result is positive where z is
    "sigmoid": Activation("sigmoid", {}, formulas.sigmoid, formulas.sigmoid_grad),
    "tanh": Activation("tanh", {}, formulas.hyperbolic_tangent, formulas.tanh_grad),
}
ALL = {**BY_INPUT, **BY_RESULT}
BACKWARD = {name: backward_of((a.gradient,))[0] for name, a in ALL.items()}
ON_NUMPY = {name: numpy_gradient(a.gradient, False) for name, a in ALL.items()}
ON_TENSORS = {name: backends.translate(a.gradient, backends.on_tensors) for name, a in ALL.items()}


def refuse_unknown(name: str, activation: Any, names: tuple[str, ...]) -> None:
    """Raise ArgumentError for an activation that the op `name` does not take."""
    if activation not in names:
        raise ArgumentError(f"{name}: activation is {activation!r}; it is one of {', '.join(map(repr, names))}")


def of_numpy(activation: str, z: Any) -> Any:
    """The activation of a numpy array."""
    named = ALL[activation]
    return registry[named.op].cpu(z, **named.attrs)


def reference(activation: str, z: np.ndarray) -> np.ndarray:
    """The activation of a numpy array in plain mathematics; z itself for "none"."""
    match activation:
        case "relu":
            return np.maximum(z, 0)
        case "gelu":  # z times the normal distribution's share below z
            return z * np.vectorize(math.erfc, [float])(-z / 2**0.5) / 2
        case "gelu_tanh":  # (1 + tanh u) / 2 is the sigmoid of 2 u, which loses no digits where tanh is near -1
            return z / (1 + np.exp(-2 * (2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))
        case "silu":
            return z / (1 + np.exp(-z))
        case "sigmoid":
            return 1 / (1 + np.exp(-z))
        case "tanh":
            return np.tanh(z)
    return z
