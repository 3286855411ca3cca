"""Fusion of neighbouring modules into one op on a GPU: a layer with its activation, a sum with its normalisation."""

from __future__ import annotations

from typing import Any

from tritensor.ground.dtypes import is_float
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor

_FUNCTIONS: dict[Any, str] = {F.relu: "relu", F.gelu: "gelu", F.silu: "silu", F.sigmoid: "sigmoid", F.tanh: "tanh"}
NORMALISED = ("relu", "gelu", "gelu_tanh", "silu")  # what normalisations of channels take


def _is_untouched(module: Any) -> bool:
    """Whether nobody wants to see what the module gets or gives, or has it compute something else."""
    return module._hooks is None and "forward" not in module.__dict__


def _is_float_on_gpu(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_cuda and is_float(x._array.dtype)


def _is_same_float_on_gpu(x: Any, like: Any) -> bool:
    """Whether x is a tensor of floats on a GPU, of a parameter's type."""
    return _is_float_on_gpu(x) and like._array.dtype == x._array.dtype


def can_fuse_product(layer: Any, x: Any) -> bool:
    """What a Linear and a convolution say of x: it is of their type, and they have more than one output."""
    return layer.weight._array.ndim > 1 and _is_same_float_on_gpu(x, layer.weight)


def can_fuse_norm(layer: Any, x: Any) -> bool:
    """What a normalisation of channels says of x: it scales and shifts, and there is something to normalise."""
    return layer.weight is not None and layer.bias is not None and _is_float_on_gpu(x) and x._array.ndim > 1 and x._array.size > 0


def fused_activation_name(layer: Any, activation: Any, x: Any) -> str:
    """The name of an activation, a module or a function, which `layer` computes beside its own result of x by `_forward_with_activation`; "" where it does not.

    A class says so itself: `_fuses`, the names that a layer takes, `_fuses_of`, whether it does of x, and `_named`, an activation's own. Classes
    derived of it do not.
    """
    # the class's own dict: a subclass may override forward, which the fused kernel would skip
    takes = type(layer).__dict__.get("_fuses", ())
    if not takes:
        return ""
    if "_named" in type(activation).__dict__:
        name = activation._named if _is_untouched(activation) else ""
    else:
        name = _FUNCTIONS.get(activation, "") if callable(activation) and hasattr(activation, "__name__") else ""
    return name if name in takes and _is_untouched(layer) and layer._fuses_of(x) else ""


def apply_then_activate(layer: Any, activation: Any, x: Any) -> Any:
    """activation(layer(x)), by one op where there is one."""
    name = fused_activation_name(layer, activation, x)
    return layer._forward_with_activation(x, name) if name else activation(layer(x))


def norm_add_activate(norm: Any, activation: Any, x: Any, residual: Any) -> Any:
    """activation(norm(x) + residual), by one op where norm is a batch normalisation that takes the activation."""
    name = fused_activation_name(norm, activation, x)
    # the kernel reads the residual at x's indices: nothing broadcasts
    if name and _is_float_on_gpu(residual) and residual._array.dtype == x._array.dtype and residual._array.shape == x._array.shape:
        return norm._forward_with_activation(x, name, residual)
    return activation(norm(x) + residual)


def add_then_norm(norm: Any, x: Any, residual: Any) -> tuple[Any, Any]:
    """(norm(total), total) of total = residual + x, by one op where norm is a LayerNorm itself."""
    if (
        "_forward_of_sum" in type(norm).__dict__
        and _is_untouched(norm)
        and norm.weight is not None
        and _is_same_float_on_gpu(x, norm.weight)
        and _is_same_float_on_gpu(residual, norm.weight)
        and x._array.shape == residual._array.shape
    ):
        found: tuple[Any, Any] = norm._forward_of_sum(x, residual)
        return found
    total = residual + x
    return norm(total), total
