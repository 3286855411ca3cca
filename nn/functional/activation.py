"""Activations: of each element alone, along a dim (softmax and its kin), and drawn (rrelu, gumbel_softmax)."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.ground.call_site import warn
from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import compute_type, draw_exponential
from tritensor.tensor.functions.pointwise import activations as shared
from tritensor.tensor.overriding.protocol import awaken
from tritensor.tensor.public_api.arguments import public_error
from tritensor.tensor.public_api.publish import checked, exported


def _write_sequence(inplace: bool) -> int | None:
    """The number that tells nodes made for a write in place from older ones."""
    return next_sequence() if inplace and state.enabled else None


@exported
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    try:
        return overwrite(input, ops.relu(input), "relu_") if inplace else ops.relu(input)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        if awaken((input,)):
            return relu(input, inplace)
        raise public_error(relu, (input, inplace), error) from None


def _clamp(name: str, input: Tensor, low: float, high: float) -> Tensor:
    if low > high:
        raise ArgumentError(f"{name}: min_val is {low}, max_val {high}; min_val must not be the larger")
    whole = not input.dtype.is_floating_point  # integers are clamped by integers: a float bound would make floats of them
    if whole and low < 0 and input.dtype.kind == "uint":
        raise ArgumentError(f"{name}: min_val is {low}, which {input.dtype.name} cannot hold; give 0 or more, or cast the input")
    return ops.hardtanh(input, low=int(low) if whole else float(low), high=int(high) if whole else float(high))


@checked
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""
    since = _write_sequence(inplace)
    y = ops.leaky_relu(input, negative_slope=float(negative_slope))
    return overwrite(input, y, "leaky_relu_", since) if inplace else y


@checked
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""
    since = _write_sequence(inplace)
    y = ops.elu(input, alpha=float(alpha))
    return overwrite(input, y, "elu_", since) if inplace else y


@checked
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """1.0507 x where positive, else 1.7581 (exp(x) - 1): keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""
    since = _write_sequence(inplace)
    y = shared.selu(input)
    return overwrite(input, y, "selu_", since) if inplace else y


@checked
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1) (Barron 2017)."""
    since = _write_sequence(inplace)
    y = shared.celu(input, alpha)
    return overwrite(input, y, "celu_", since) if inplace else y


@checked
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x where positive, else a x: a is drawn from [lower, upper) for each element in training, else halfway between."""
    since = _write_sequence(inplace)
    y = shared.rrelu(input, lower, upper, training)
    return overwrite(input, y, "rrelu_", since) if inplace else y


@checked
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, else the value."""
    since = _write_sequence(inplace)
    limit, other = shared.to_number("threshold", "threshold", threshold), shared.to_number("threshold", "value", value)
    y = ops.threshold(input, threshold=limit, value=other)
    return overwrite(input, y, "threshold_", since) if inplace else y


@checked
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x held between min_val and max_val."""
    since = _write_sequence(inplace)
    y = _clamp("hardtanh", input, min_val, max_val)
    return overwrite(input, y, "hardtanh_", since) if inplace else y


@checked
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    since = _write_sequence(inplace)
    y = _clamp("relu6", input, 0, 6)
    return overwrite(input, y, "relu6_", since) if inplace else y


@checked
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    since = _write_sequence(inplace)
    y = ops.hardsigmoid(input)
    return overwrite(input, y, "hardsigmoid_", since) if inplace else y


@checked
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019)."""
    since = _write_sequence(inplace)
    y = ops.hardswish(input)
    return overwrite(input, y, "hardswish_", since) if inplace else y


@checked
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(log(1 + exp(x))) (Misra 2019)."""
    since = _write_sequence(inplace)
    y = ops.mish(input)
    return overwrite(input, y, "mish_", since) if inplace else y


@checked
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    since = _write_sequence(inplace)
    y = ops.mul(input, ops.sigmoid(input)) if input.is_complex() else ops.silu(input)  # the fused kernel knows real numbers alone
    return overwrite(input, y, "silu_", since) if inplace else y


@checked
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu written over the input."""
    return leaky_relu(input, negative_slope, True)  # type: ignore[no-any-return]


@checked
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu written over the input."""
    return elu(input, alpha, True)  # type: ignore[no-any-return]


@checked
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh written over the input."""
    return hardtanh(input, min_val, max_val, True)  # type: ignore[no-any-return]


@checked
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself where beta x is above `threshold`."""
    # above the threshold exp would overflow, and the logarithm is x to the last digit
    return ops.softplus(input, beta=float(beta), threshold=float(threshold))


@checked
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is {approximate!r}; it is 'none' or 'tanh'")
    return ops.gelu(input, approximate=approximate)


@checked
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd above lambd, x + lambd below -lambd, else 0."""
    if not lambd >= 0:  # also of NaN
        raise ArgumentError(f"softshrink: lambd is {lambd}; it must be at least 0")
    return ops.softshrink(input, limit=float(lambd))


@checked
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return ops.sub(input, ops.tanh(input))


@checked
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return ops.div(input, ops.add(ops.abs(input), 1))


@checked
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return ops.log_sigmoid(input.contiguous())  # PyTorch's result is in C order


@checked
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a sigmoid(b), a and b the halves of the input along dim (Dauphin et al. 2017)."""
    if input.ndim == 0:
        raise ShapeError("glu: input () has no dimension to halve; give at least one")
    dim = normal_dim("glu", dim, input.ndim)
    return ops.glu(input, dim=dim)


@checked
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


@checked
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return ops.tanh(input)


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"{name}: dim was not given; it is taken from the number of dimensions as in PyTorch; pass dim=", DeprecationWarning)
    return 0 if ndim in (0, 1, 3) else 1  # PyTorch's guess, from the number of dimensions alone


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


@checked
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x) along dim."""
    x = input if dtype is None else input.to(as_dtype(dtype))
    return ops.softmax(ops.neg(x), dim=normal_dim("softmin", _implicit_dim("softmin", x.ndim) if dim is None else dim, x.ndim))


@checked
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + Gumbel noise) / tau): a relaxed draw of a class along dim; hard=True gives the one-hot draw with the relaxed one's gradient
    (Jang et al. 2017, Maddison et al. 2017)."""
    if float(eps) != 1e-10:
        warn("gumbel_softmax: eps changes nothing; leave it out")
    if not logits.dtype.is_floating_point:
        raise DTypeError(f"gumbel_softmax: logits is {logits.dtype.name}; it takes float types; cast it with .float()")
    dim = normal_dim("gumbel_softmax", dim, logits.ndim)
    drawn = draw_exponential(tuple(logits.shape), compute_type(logits._array.dtype), logits.device)  # above 0: its logarithm is finite
    noise = to_dtype(ops.neg(ops.log(drawn)), logits._array.dtype)
    soft = ops.softmax(ops.div(ops.add(logits, noise), tau), dim=dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    zeros = ops.full(shape=tuple(logits.shape), value=0, dtype=logits._array.dtype, device=logits.device)
    # straight through: the value is the one-hot draw, the gradient that of soft
    return ops.add(ops.sub(zeros.scatter(dim, best, 1.0), soft.detach()), soft)
