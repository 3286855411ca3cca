"""Window functions for spectra: the old names (hann_window), periodic by default, and those of signal.windows, symmetric by default.

All are computed on the host in float64 and rounded once. Sources: F. J. Harris, "On the use of windows for harmonic analysis with the
discrete Fourier transform" (1978); A. H. Nuttall, "Some windows with very good sidelobe behavior" (1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.array import from_host
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.constructors import numpy_type
from tritensor.tensor.public_api.layout import check_layout
from tritensor.tensor.public_api.publish import checked, function, rename_function

Shape = Callable[["Positions"], np.ndarray]  # the values at some places of a symmetric window
CHUNK = 16384  # places computed at a time, in the cache


class Positions:
    """Neighbouring places k of a symmetric window of n values, with cosines and sines of equal steps."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.first, self.k = 0, np.empty(0)
        self._tables: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def wave(self, angle: float, start: float, sine: bool) -> np.ndarray:
        """cos, or sin, of (k + start) * angle: of a place and its run's first one, put together by the addition theorem."""
        if angle not in self._tables:
            steps = np.arange(min(CHUNK, self.n)) * angle
            self._tables[angle] = np.cos(steps), np.sin(steps)
        c, s = (t[: self.k.size] for t in self._tables[angle])
        at = (self.first + start) * angle
        y = c * (math.sin(at) if sine else math.cos(at))
        y += s * (math.cos(at) if sine else -math.sin(at))
        return y


def _make_window(name: str, length: Any, symmetric: bool, dtype: Any, device: Any, shape: Shape) -> Tensor:
    """A window; of a symmetric one half is computed, the other one mirrors it. A periodic one is one longer, without its last value."""
    if isinstance(length, bool) or not hasattr(length, "__index__"):
        raise TypeError(f"{name}: the length is a {type(length).__name__}; give an int")
    n = int(length)
    if n < 0:
        raise ShapeError(f"{name}: length {n}; it must be 0 or more")
    kind = numpy_type(dtype)
    if dtypes.of(kind).kind != "float":
        raise DTypeError(f"{name}: {dtypes.of(kind).name} cannot hold a window; give a floating dtype")
    # The formulas divide by n - 1; a window of one value is 1.
    y = np.ones(n, kind) if n < 2 else np.empty(n, kind)
    if n > 1:
        # A periodic window is a symmetric one without its last value, so that its spectrum has no seam.
        full = n if symmetric else n + 1
        half = (full + 1) // 2
        places = Positions(full)
        for first in range(0, half, CHUNK):
            last = min(first + CHUNK, half)
            places.first, places.k = first, np.arange(first, last, dtype=np.float64)
            y[first:last] = shape(places)
        # Mirrored, not computed: both halves agree to the bit.
        y[half:] = y[full - n : full - half][::-1]
    return new_tensor(y if (on := as_device(device)).type == "cpu" else from_host(y, on))


# -- values
def _cosines(*weights: float) -> Shape:
    """a0 - a1 cos(x) + a2 cos(2x) - ..., x = 2 pi k / (n - 1): by Clenshaw's recurrence one cosine for all terms."""
    signed = [w if i % 2 == 0 else -w for i, w in enumerate(weights)]

    def shape(at: Positions) -> np.ndarray:
        c = at.wave(2 * math.pi / (at.n - 1), 0, False)
        ahead: Any = 0.0
        here: Any = 0.0
        for w in reversed(signed[1:]):
            here, ahead = w - ahead + 2 * here * c, here
        c *= here
        c += signed[0] - ahead
        return c

    return shape


def _triangle(at: Positions) -> np.ndarray:
    """1 - |2k / (n - 1) - 1|, over the first half."""
    return at.k * (2 / (at.n - 1))


def _kaiser(beta: float) -> Shape:
    """I0(beta sqrt(1 - (2k / (n - 1) - 1)^2)) / I0(beta)."""

    def shape(at: Positions) -> np.ndarray:
        x = at.k * (2 / (at.n - 1)) - 1
        return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)

    return shape


def _gaussian(std: float) -> Shape:
    """exp(-x^2 / 2), x = (k - (n - 1) / 2) / std."""
    return lambda at: np.exp(-0.5 * ((at.k - (at.n - 1) / 2) / std) ** 2)


def _sine(at: Positions) -> np.ndarray:
    """sin(pi (k + 1/2) / n)."""
    return at.wave(math.pi / at.n, 0.5, True)


BLACKMAN = (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


# -- the old names
def _publish_periodic(name: str, shape: Shape, doc: str) -> None:
    def call(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
        return _make_window(name, window_length, not periodic, dtype, device, shape)

    function(method=False, maker=True)(rename_function(call, name, doc))


_publish_periodic(
    "hann_window", _cosines(0.5, 0.5), "(1 - cos(2 pi k / N)) / 2; N is the length, or one less where the window is not periodic."
)
_publish_periodic("blackman_window", _cosines(*BLACKMAN), "0.42 - cos(2 pi k / N) / 2 + 0.08 cos(4 pi k / N).")
_publish_periodic("bartlett_window", _triangle, "1 - |2k / N - 1|.")


@function(method=False, maker=True)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """alpha - beta cos(2 pi k / N)."""
    return _make_window("hamming_window", window_length, not periodic, dtype, device, _cosines(float(alpha), float(beta)))


@function(method=False, maker=True)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """I0(beta sqrt(1 - (2k / N - 1)^2)) / I0(beta)."""
    return _make_window("kaiser_window", window_length, not periodic, dtype, device, _kaiser(float(beta)))


# -- signal.windows
windows: dict[str, Callable[..., Tensor]] = {}


def _make_public_window(name: str, shape: Shape, M: int, sym: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> Tensor:
    if layout is not None:
        check_layout(name, layout)
    # scipy's functions, which these follow, know no 16-bit types; PyTorch refuses them here.
    if dtypes.of(numpy_type(dtype)).name not in ("float32", "float64"):
        raise ArgumentError(f"{name}: dtype is {dtypes.of(numpy_type(dtype))}; give float32 or float64")
    made = _make_window(name, M, sym, dtype, device, shape)
    return made.requires_grad_() if requires_grad else made


def _publish(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    windows[f.__name__] = checked(f)
    f.__module__ = windows[f.__name__].__module__ = "tritensor.signal.windows"
    return f


def _require_positive(name: str, what: str, value: float) -> float:
    if not value > 0:
        raise ArgumentError(f"{name}: {what} is {value}; it must be above 0")
    return float(value)


_PLAIN = {
    "bartlett": (_triangle, "1 - |2k / (M - 1) - 1|; with sym=False one period, 2k / M."),
    "blackman": (_cosines(*BLACKMAN), "0.42 - cos(x) / 2 + 0.08 cos(2x), x = 2 pi k / (M - 1)."),
    "cosine": (_sine, "sin(pi (k + 1/2) / M)."),
    "hamming": (_cosines(0.54, 0.46), "0.54 - 0.46 cos(x), x = 2 pi k / (M - 1)."),
    "hann": (_cosines(0.5, 0.5), "(1 - cos(x)) / 2, x = 2 pi k / (M - 1)."),
    "nuttall": (_cosines(*NUTTALL), "0.3635819 - 0.4891775 cos(x) + 0.1365995 cos(2x) - 0.0106411 cos(3x), x = 2 pi k / (M - 1)."),
}


def _publish_plain(name: str, shape: Shape, doc: str) -> None:
    def call(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        return _make_public_window(name, shape, M, sym, dtype, layout, device, requires_grad)

    _publish(rename_function(call, name, doc))


for _name, _given in _PLAIN.items():
    _publish_plain(_name, *_given)


@_publish
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|k - center| / tau); the centre is the middle unless given, which goes with sym=False only.

    Raises ValueError for a centre of a symmetric window, and for a tau that is not positive.
    """
    tau = _require_positive("exponential", "tau", tau)
    # scipy's rule, which PyTorch keeps.
    if sym and center is not None:
        raise ArgumentError(f"exponential: center is {center}, but a symmetric window's is its middle; give sym=False, or no center")
    if center is None:
        shape: Shape = lambda at: np.exp(-np.abs(at.k - (at.n - 1) / 2) / tau)  # noqa: E731
        return _make_public_window("exponential", shape, M, sym, dtype, layout, device, requires_grad)
    whole = _make_public_window("exponential", _triangle, M, True, dtype, layout, None, False)
    values = np.exp(-np.abs(np.arange(whole._array.size) - float(center)) / tau).astype(whole._array.dtype)
    values = np.ones_like(values) if values.size == 1 else values
    made = new_tensor(from_host(values, as_device(device)))
    return made.requires_grad_() if requires_grad else made


@_publish
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-x^2 / 2), x the distance from the middle in `std`s. Raises ValueError for a std that is not positive."""
    shape = _gaussian(_require_positive("gaussian", "std", std))
    return _make_public_window("gaussian", shape, M, sym, dtype, layout, device, requires_grad)


@_publish
def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """a[0] - a[1] cos(x) + a[2] cos(2x) - ..., x = 2 pi k / (M - 1). Raises TypeError where a is no sequence, ValueError where it is empty."""
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine: a is {a!r}; give a list of numbers")
    weights = tuple(a)
    if not weights:
        raise ArgumentError("general_cosine: a is empty; give at least one number")
    return _make_public_window("general_cosine", _cosines(*map(float, weights)), M, sym, dtype, layout, device, requires_grad)


@_publish
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos(x), x = 2 pi k / (M - 1)."""
    return _make_public_window("general_hamming", _cosines(float(alpha), 1 - float(alpha)), M, sym, dtype, layout, device, requires_grad)


@_publish
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2k / (M - 1) - 1)^2)) / I0(beta). Raises ValueError for a negative beta."""
    if not beta >= 0:
        raise ArgumentError(f"kaiser: beta is {beta}; it must be 0 or more")
    return _make_public_window("kaiser", _kaiser(float(beta)), M, sym, dtype, layout, device, requires_grad)
