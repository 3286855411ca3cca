"""Initial values for parameters: PyTorch's formulas and names; each fills its tensor in place, outside the graph, and returns it."""

from __future__ import annotations

import math

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.errors import ShapeError
from tritensor.random import Generator
from tritensor.tensor.core import Tensor, as_tensor
from tritensor.tensor.publishing.publish import checked


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Factor on the standard deviation that keeps variances through a nonlinearity (He et al. 2015). `param`: leaky_relu's slope (0.01)."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"calculate_gain: negative_slope {param!r} is not a number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    linear = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
    if nonlinearity not in gains and nonlinearity not in linear:
        raise ValueError(
            f"calculate_gain: nonlinearity {nonlinearity!r} is not known; there are {', '.join([*linear, *gains, 'leaky_relu'])}"
        )
    return gains.get(nonlinearity, 1.0)


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
    """Normal, restricted to [a, b]: the inverse of the distribution function at a uniform number between its values at a and b."""
    low, high = (math.erf((end - mean) / (std * math.sqrt(2.0))) for end in (a, b))
    tensor.uniform_(low, high, generator=generator)
    values = mean + std * math.sqrt(2.0) * _erfinv(tensor.detach().cpu().double().numpy())
    return _fill(tensor, np.clip(values, a, b))


def _erfinv(y: np.ndarray) -> np.ndarray:
    """x with erf(x) = y in float64: Winitzki's approximation, then Newton steps."""
    inside = np.clip(y, -1 + 1e-16, 1 - 1e-16)
    log = np.log1p(-inside * inside)
    part = 2 / (math.pi * 0.147) + log / 2
    x = np.copysign(np.sqrt(np.sqrt(part * part - log / 0.147) - part), inside)
    erf = np.frompyfunc(math.erf, 1, 1)
    for _ in range(3):
        x = x - (erf(x).astype(np.float64) - inside) * (math.sqrt(math.pi) / 2) * np.exp(x * x)
    return x


def _fill(tensor: Tensor, values: np.ndarray) -> Tensor:
    """Write float64 values computed in numpy, whatever the tensor's type and device."""
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


def fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """Inputs and outputs per unit of a weight (out, in, *kernel)."""
    if tensor.ndim < 2:
        raise ShapeError(f"{name}: tensor {tuple(tensor.shape)} has no fan in and fan out; give one with 2 or more dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@checked
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / sum(fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


@checked
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans("xavier_normal_", tensor))), generator)


def _kaiming(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """Standard deviation gain / sqrt(fan) (He et al. 2015)."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{name}: mode is {mode!r}; it is 'fan_in' or 'fan_out'")
    fan = fans(name, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


@checked
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform on +-sqrt(3) gain / sqrt(fan) (He et al. 2015); `a` is the slope of the leaky_relu that follows."""
    bound = math.sqrt(3.0) * _kaiming("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@checked
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan) (He et al. 2015)."""
    return normal_(tensor, 0.0, _kaiming("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


@checked
@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A (semi-)orthogonal matrix over (first dim, all others), from the QR factors of a normal one (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: tensor {tuple(tensor.shape)} must have 2 or more dimensions")
    if tensor.numel() == 0:
        return tensor
    tensor.normal_(0.0, 1.0, generator=generator)
    flat = tensor.detach().cpu().double().numpy().reshape(tensor.shape[0], -1)
    q, r = np.linalg.qr(flat.T if flat.shape[0] < flat.shape[1] else flat)
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # the sign of R's diagonal makes Q uniform among orthogonal matrices
    q = q.T if flat.shape[0] < flat.shape[1] else q
    return _fill(tensor, (gain * q).reshape(tuple(tensor.shape)))
