"""Initial values for parameters: PyTorch's formulas and names; each fills its tensor in place, outside the graph, and returns it."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import compute_type, draw_uniform, randperm
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.publish import checked


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Factor on the standard deviation that keeps variances through a nonlinearity (He et al. 2015). `param`: leaky_relu's slope (0.01)."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):  # True is an int
            raise ValueError(f"calculate_gain: negative_slope {param!r} is not a number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    linear = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
    if nonlinearity not in gains and nonlinearity not in linear:
        raise ValueError(
            f"calculate_gain: nonlinearity {nonlinearity!r} is not known; there are {', '.join([*linear, *gains, 'leaky_relu'])}"
        )
    return gains.get(nonlinearity, 1.0)  # PyTorch's sigmoid, too, has a gain of 1


@checked
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@checked
@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@checked
@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Normal, restricted to [a, b]: the inverse of the distribution function at a uniform number between its values at a and b.

    Raises ValueError for b < a.
    """
    if a > b:
        raise ArgumentError(f"trunc_normal_: a is {a}, b {b}; a must not be above b")
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect; give ends on either side of it"
        )
    ends = sorted(((a - mean) / std, (b - mean) / std))
    sign = -1.0 if ends[0] + ends[1] > 0 else 1.0  # the lower tail's masses are small numbers, exact ones; the upper's are near 1
    low, high = sorted(0.5 * math.erfc(-sign * end / math.sqrt(2.0)) for end in ends)
    u = draw_uniform(tuple(tensor.shape), compute_type(tensor._array.dtype), tensor.device, generator)
    masses = u.double() * (high - low) + low
    return tensor.copy_((ops.ndtri(masses) * (sign * std) + mean).clamp(a, b))


def _fill(tensor: Tensor, values: np.ndarray) -> Tensor:
    """Write float64 values computed in numpy, whatever the tensor's type and device."""
    if tensor.is_meta:
        return tensor
    # through a cast: the parameter keeps its memory, which optimizers and views share
    return tensor.copy_(as_tensor(np.asarray(values)).to(device=tensor.device, dtype=tensor.dtype))


@checked
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Every element `val`."""
    return tensor.fill_(val)


@checked
def ones_(tensor: Tensor) -> Tensor:
    """Every element 1."""
    return constant_(tensor, 1.0)


@checked
def zeros_(tensor: Tensor) -> Tensor:
    """Every element 0."""
    return constant_(tensor, 0.0)


@checked
@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: tensor {tuple(tensor.shape)} is not a matrix")
    return _fill(tensor, np.eye(*tensor.shape))


@checked
@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The convolution weight (out, in, ...) of 1 to 3 axes that leaves as many channels as it can as they are; in each of the groups by itself."""
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError(f"dirac_: tensor {tuple(tensor.shape)}: only tensors with 3, 4, or 5 dimensions are supported")
    if groups <= 0 or tensor.shape[0] % groups:
        raise ArgumentError(f"dirac_: dim 0 must be divisible by groups; {groups} groups do not share {tensor.shape[0]} channels evenly")
    values = np.zeros(tuple(tensor.shape))
    each = tensor.shape[0] // groups
    kept = np.arange(min(each, tensor.shape[1]))
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for first in range(0, each * groups, max(each, 1)):  # of no output channels a step of 0 would raise
        values[(first + kept, kept, *middle)] = 1
    return _fill(tensor, values)


def count_fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """Inputs and outputs per unit of a weight (out, in, *kernel)."""
    if tensor.ndim < 2:
        raise ShapeError(f"{name}: tensor {tuple(tensor.shape)} has no fan in and fan out; give one with 2 or more dimensions")
    field = math.prod(tensor.shape[2:])  # a weight of a convolution counts once for each cell of its kernel
    return tensor.shape[1] * field, tensor.shape[0] * field


@checked
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / sum(count_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


@checked
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(count_fans("xavier_normal_", tensor))), generator)


def _kaiming_deviation(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """Standard deviation gain / sqrt(fan) (He et al. 2015)."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return 0.0  # a deviation of nothing: the draw that follows fills no element
    fan = _choose_fan(name, tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _choose_fan(name: str, tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"{name}: mode is {mode!r}; it is 'fan_in' or 'fan_out'")
    return count_fans(name, tensor)[mode.lower() == "fan_out"]  # PyTorch takes the mode in either case


@checked
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform on +-sqrt(3) gain / sqrt(fan) (He et al. 2015); `a` is the slope of the leaky_relu that follows.

    >>> w = nn.init.kaiming_uniform_(tt.empty(8, 6), nonlinearity="relu")
    >>> bool(w.abs().max() <= 1)  # sqrt(6 / 6)
    True
    """
    bound = math.sqrt(3.0) * _kaiming_deviation("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@checked
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan) (He et al. 2015)."""
    return normal_(tensor, 0.0, _kaiming_deviation("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


@checked
@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A (semi-)orthogonal matrix over (first dim, all others), from the QR factors of a normal one (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: tensor {tuple(tensor.shape)} must have 2 or more dimensions")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    tensor.normal_(0.0, 1.0, generator=generator)  # drawn in the tensor itself, so that a seed gives the numbers of normal_
    flat = tensor.detach().cpu().double().numpy().reshape(tensor.shape[0], -1)
    # in float64 on the host, whatever the type and device: a 16-bit Q would not be orthogonal
    q, r = np.linalg.qr(flat.T if flat.shape[0] < flat.shape[1] else flat)
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # the sign of R's diagonal makes Q uniform among orthogonal matrices
    q = q.T if flat.shape[0] < flat.shape[1] else q
    return _fill(tensor, (gain * q).reshape(tuple(tensor.shape)))


@checked
@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation `std`, and zeros in a fraction `sparsity` of each column's places, drawn for each (Martens 2010)."""
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: tensor {tuple(tensor.shape)}: only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    # after the normal numbers, column by column: the order of PyTorch's draws
    order = [randperm(rows, generator=generator, device=tensor.device) for _ in range(columns)]
    for column, places in enumerate(order):
        tensor[places[:zeros], column] = 0
    return tensor


# Names that PyTorch keeps for older scripts: without the underscore, and the two that its own layers call.
def _deprecated_name(function: Any) -> Any:
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        warn(f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning)
        return function(*args, **kwargs)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name[:-1]
    call.__doc__ = f"{name}, under the name that it had before."
    return call


uniform, normal, constant, eye, dirac, sparse = map(_deprecated_name, (uniform_, normal_, constant_, eye_, dirac_, sparse_))
xavier_uniform, xavier_normal, orthogonal = map(_deprecated_name, (xavier_uniform_, xavier_normal_, orthogonal_))
kaiming_uniform, kaiming_normal = map(_deprecated_name, (kaiming_uniform_, kaiming_normal_))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    return count_fans("fan in and fan out", tensor)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    return _choose_fan("fan", tensor, mode)


_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
