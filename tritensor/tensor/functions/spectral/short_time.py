"""The short-time Fourier transform and its inverse: spectra of windows of a signal, and the signal again (Griffin and Lim 1984)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, namespaces

_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # PyTorch's names, and numpy's
_SMALLEST_ENVELOPE = 1e-11  # of the squared windows that meet in a sample; below, it cannot be divided by


def _transform(name: str) -> Any:
    return namespaces["fft"][name]


def _require_window(name: str, window: Any) -> None:
    if window is not None and not isinstance(window, Tensor):
        raise TypeError(f"{name}: window is a {type(window).__name__}; give a tensor, or None")


def _parse_lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None) -> tuple[int, int]:
    """(hop, window length), checked."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop <= 0:
        raise ArgumentError(f"{name}: hop_length is {hop}; windows must begin at least 1 apart")
    if not 0 < width <= n_fft:
        raise ArgumentError(f"{name}: win_length is {width}; it must be 1 to n_fft, {n_fft}")
    if window is None:
        warn(f"{name}: no window is given, so that a rectangular one is taken; give window=, such as hann_window({width})")
    elif window.ndim != 1 or window.shape[0] != width:
        raise ShapeError(f"{name}: window {tuple(window.shape)}; it must be a vector of win_length {width} elements")
    return hop, width


def _pad_window(window: Tensor | None, width: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window with zeros on both sides, up to n_fft elements; None for one of ones."""
    if window is None:
        if width == n_fft:
            return None
        window = ops.full(shape=(width,), value=1, dtype=like._array.dtype, device=like.device)
    if width == n_fft:
        return window
    left = (n_fft - width) // 2
    return ops.pad_view(window, shape=(n_fft,), index=(slice(left, left + width),))


def _pad_signal(name: str, x: Tensor, left: int, right: int, mode: str) -> Tensor:
    """x (..., n) longer at both ends."""
    n = x.shape[-1]
    if mode == "constant":
        lead = (slice(None),) * (x.ndim - 1)
        return ops.pad_view(x, shape=(*x.shape[:-1], left + n + right), index=(*lead, slice(left, left + n)))
    if mode not in _PAD_MODES:
        raise ArgumentError(f"{name}: pad_mode is {mode!r}; it is one of 'constant', {', '.join(map(repr, _PAD_MODES))}")
    limit = n - 1 if mode == "reflect" else n
    if mode != "replicate" and max(left, right) > limit:
        raise ShapeError(
            f"{name}: pad_mode {mode!r} of {max(left, right)} on a signal of {n}; at most {limit} are there; give a smaller n_fft"
        )
    return x[..., np.pad(np.arange(n), (left, right), mode=_PAD_MODES[mode])]  # type: ignore[call-overload]


@function
def stft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Spectra of windows of a signal: (length) or (batch, length) to (batch, frequencies, windows), complex.

    Args:
        n_fft: points of a transform. hop_length: from one window to the next, n_fft // 4 unless given.
        win_length, window: the weights of a window, in the middle of n_fft points; ones (with a warning) unless given.
        center: fill up at both ends (`pad_mode`), so that window t is centred at t * hop_length.
        normalized: divide by the root of n_fft. onesided: n_fft // 2 + 1 frequencies; of real signals it goes without saying.
        return_complex: must be given for real signals; False gives pairs of real numbers in a last dim of 2.
        align_to_window: without center, the first window's weights begin at the first sample.

    Raises:
        ShapeError: a signal of other dims, or one that is shorter than n_fft. ArgumentError: lengths that do not fit, or what contradicts.
        DeviceError: a signal on a GPU, where complex numbers are not.
    """
    _require_window("stft", window)
    if not (x.is_floating_point() or x.is_complex()):
        raise DTypeError(f"stft: input is {x.dtype.name}; it takes floating and complex signals; cast it with .float()")
    if x.ndim not in (1, 2):
        raise ShapeError(f"stft: input {tuple(x.shape)}; it takes a signal (length) or several (batch, length)")
    hop, width = _parse_lengths("stft", n_fft, hop_length, win_length, window)
    is_complex = x.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        raise ArgumentError("stft: return_complex must be given for a real signal; give return_complex=True")
    if center and align_to_window is not None:
        raise ArgumentError("stft: align_to_window says where the first window begins without center; give center=False with it")
    # The spectrum of a real signal is Hermitian: half of it is all.
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise ArgumentError("stft: onesided is True, and a complex signal (or window) has no half spectrum; leave it out")
    signal = x if x.ndim == 2 else ops.reshape(x, shape=(1, x.shape[0]))
    if center:
        signal = _pad_signal("stft", signal, n_fft // 2, n_fft // 2, pad_mode)
    elif align_to_window:
        left = (n_fft - width) // 2
        signal = _pad_signal("stft", signal, left, n_fft - width - left, "constant")
    length = signal.shape[-1]
    if not 0 < n_fft <= length:
        raise ArgumentError(f"stft: n_fft is {n_fft}; it must be 1 to the length of the signal, {length}")
    frames = ops.unfold(signal, dim=1, size=n_fft, step=hop)  # (batch, windows, n_fft)
    weights = _pad_window(window, width, n_fft, x)
    if weights is not None:
        frames = ops.mul(frames, weights)
    spectra = _transform("rfft" if half else "fft")(frames, norm="ortho" if normalized else "backward")
    spectra = ops.permute(spectra, dims=(0, 2, 1))
    if x.ndim == 1:
        spectra = ops.index_view(spectra, index=(0,))
    return spectra if return_complex or return_complex is None else ops.view_as_real(spectra)


@function
def istft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose spectra are nearest, in the squared error, to those given: the inverse of `stft`, with the same arguments.

    Args:
        x: complex (frequencies, windows) or (batch, frequencies, windows).
        length: of the result; as far as whole windows reach unless given, filled up with zeros (and a warning) beyond that.

    Raises:
        DTypeError: real input. ShapeError: dims or frequencies that do not fit n_fft. ArgumentError: windows whose squares add up to
        (nearly) nothing somewhere, so that the signal is not determined there.
    """
    _require_window("istft", window)
    if not x.is_complex():
        raise DTypeError(f"istft: input is {x.dtype.name}; it takes complex spectra, as stft(..., return_complex=True) gives them")
    if x.ndim not in (2, 3) or not x.numel():
        raise ShapeError(f"istft: input {tuple(x.shape)}; it takes (frequencies, windows) or (batch, frequencies, windows), not empty")
    hop, width = _parse_lengths("istft", n_fft, hop_length, win_length, window)
    points, count = x.shape[-2:]
    half = points != n_fft if onesided is None else onesided
    if points != (n_fft // 2 + 1 if half else n_fft):
        raise ShapeError(f"istft: {points} frequencies; n_fft {n_fft} has {n_fft // 2 + 1 if half else n_fft} with onesided={half}")
    if half and return_complex:
        raise ArgumentError("istft: half a spectrum (onesided) is that of a real signal; leave return_complex=True out")
    if not return_complex and window is not None and window.is_complex():
        raise ArgumentError("istft: the window is complex; its signal is as well: give return_complex=True")
    spectra = x if x.ndim == 3 else ops.reshape(x, shape=(1, *x.shape))
    frames = ops.permute(spectra, dims=(0, 2, 1))  # (batch, windows, frequencies)
    norm = "ortho" if normalized else "backward"
    parts = _transform("ifft")(frames, norm=norm) if return_complex else _transform("irfft")(frames, n_fft, norm=norm)
    reach = n_fft + hop * (count - 1)
    weights = _pad_window(window, width, n_fft, parts.real)
    if weights is None:
        weights = ops.full(shape=(n_fft,), value=1, dtype=parts.real._array.dtype, device=parts.device)
    signal = _add_overlapping(ops.mul(parts, weights), hop, reach)
    # The squared windows that met in each sample (Griffin and Lim): dividing by them inverts the analysis.
    envelope = _add_overlapping(ops.copy(ops.expand(ops.mul(weights, weights), shape=(1, count, n_fft))), hop, reach)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else reach - start
    inside = (slice(None), slice(start, min(end, reach)))
    envelope = ops.index_view(envelope, index=inside)
    if not envelope.numel() or float(np.abs(envelope.detach().numpy()).min()) <= _SMALLEST_ENVELOPE:
        raise ArgumentError("istft: the squared windows add up to 0 in some sample, which is not determined; give overlapping windows")
    signal = ops.div(ops.index_view(signal, index=inside), envelope)
    if end > reach:
        warn(f"istft: length {length} is beyond the last window; the end is filled up with zeros")
        signal = ops.pad_view(signal, shape=(signal.shape[0], end - start), index=(slice(None), slice(0, signal.shape[1])))
    return ops.index_view(signal, index=(0,)) if x.ndim == 2 else signal


def _add_overlapping(windows: Tensor, hop: int, reach: int) -> Tensor:
    """Windows (batch, count, n) at their places, added up: (batch, reach)."""
    return ops.overlap_add(windows, step=hop, length=reach)
