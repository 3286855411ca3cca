"""Spectra of waveforms by the short-time Fourier transform, and the way back: with phases, and without them."""

from __future__ import annotations

import math
import warnings

from tritensor.audio import tensors as T
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


def _norms(name: str, normalized: bool | str) -> tuple[bool, bool]:
    """Whether to divide by the root of the frame's length, and by the window's norm."""
    if isinstance(normalized, str):
        if normalized not in ("frame_length", "window"):
            raise ArgumentError(f'{name}: normalized is {normalized!r}; give a bool, "window" or "frame_length"')
        return normalized == "frame_length", normalized == "window"
    if not isinstance(normalized, bool):
        raise TypeError(f'{name}: normalized is a {type(normalized).__name__}; give a bool, "window" or "frame_length"')
    return False, normalized


def _window_norm(window: Tensor) -> Tensor:
    return window.square().sum().sqrt()


def spectrogram(
    waveform: Tensor, pad: int, window: Tensor, n_fft: int, hop_length: int, win_length: int, power: float | None, normalized: bool | str,
    center: bool = True, pad_mode: str = "reflect", onesided: bool = True, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """(..., time) -> (..., n_fft // 2 + 1, frames): |stft|^power, or the complex stft where power is None. `pad` zeros are put on both sides first.

    `normalized`: True and "window" divide by the window's norm, "frame_length" by the root of n_fft.
    """
    if return_complex is not None:
        warnings.warn("spectrogram: return_complex says nothing any more; power=None gives complex numbers", stacklevel=2)
    by_length, by_window = _norms("spectrogram", normalized)
    if pad > 0:
        waveform = F.pad(waveform, (pad, pad))
    shape = waveform.shape
    spectrum: Tensor = T.stft(
        waveform.reshape(-1, shape[-1]), n_fft, hop_length, win_length, window=window, center=center, pad_mode=pad_mode, normalized=by_length,
        onesided=onesided, return_complex=True,
    )  # fmt: skip
    spectrum = spectrum.reshape(*shape[:-1], *spectrum.shape[-2:])
    if by_window:
        spectrum = spectrum / _window_norm(window)
    if power is None:
        return spectrum
    return spectrum.abs() if power == 1 else spectrum.abs().pow(power)


def inverse_spectrogram(
    spectrogram: Tensor, length: int | None, pad: int, window: Tensor, n_fft: int, hop_length: int, win_length: int, normalized: bool | str,
    center: bool = True, pad_mode: str = "reflect", onesided: bool = True,
) -> Tensor:  # fmt: skip
    """The waveform (..., time) of a complex spectrogram (..., freq, frames), by least squares. `pad` is taken off again where length is given."""
    by_length, by_window = _norms("inverse_spectrogram", normalized)
    if not spectrogram.is_complex():
        raise ArgumentError(
            f"inverse_spectrogram: the spectrogram is {spectrogram.dtype.name}; give complex numbers, as spectrogram(power=None) does"
        )
    if by_window:
        spectrogram = spectrogram * _window_norm(window)
    shape = spectrogram.shape
    waveform: Tensor = T.istft(
        spectrogram.reshape(-1, *shape[-2:]), n_fft, hop_length, win_length, window=window, center=center, normalized=by_length, onesided=onesided,
        length=None if length is None else length + 2 * pad,
    )  # fmt: skip
    if length is not None and pad > 0:
        waveform = waveform[:, pad:-pad]
    return waveform.reshape(*shape[:-2], waveform.shape[-1])


def griffinlim(
    specgram: Tensor, window: Tensor, n_fft: int, hop_length: int, win_length: int, power: float, n_iter: int, momentum: float, length: int | None,
    rand_init: bool,
) -> Tensor:  # fmt: skip
    """The waveform (..., time) of a spectrogram without phases (..., freq, frames): n_iter times the phases of what the last guess sounds like
    (Griffin and Lim 1984), sped up by `momentum` in [0, 1) (Perraudin et al. 2013)."""
    if not 0 <= momentum < 1:
        raise ArgumentError(f"griffinlim: momentum is {momentum}; give a number in [0, 1)")
    kept = momentum / (1 + momentum)
    shape = specgram.shape
    sizes = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "window": window}
    magnitude = specgram.reshape(-1, *shape[-2:]).pow(1 / power)
    complex_type = magnitude.dtype.to_complex()
    start = {"dtype": complex_type, "device": specgram.device}
    phases = T.rand(magnitude.shape, **start) if rand_init else T.ones(magnitude.shape, **start)
    before: Tensor | float = 0.0
    for _ in range(n_iter):
        guess = T.istft(magnitude * phases, length=length, **sizes)
        found = T.stft(guess, center=True, pad_mode="reflect", return_complex=True, **sizes)
        step = found - before * kept if momentum else found
        phases = step / (step.abs() + 1e-16)
        before = found
    waveform: Tensor = T.istft(magnitude * phases, length=length, **sizes)
    return waveform.reshape(*shape[:-2], waveform.shape[-1])


def phase_vocoder(complex_specgrams: Tensor, rate: float, phase_advance: Tensor) -> Tensor:
    """(..., freq, frames) -> (..., freq, ceil(frames / rate)): the same sound, `rate` times as fast. phase_advance (freq, 1): what a hop turns each bin."""
    if rate == 1:
        return complex_specgrams
    shape = complex_specgrams.shape
    spectra = complex_specgrams.reshape(-1, *shape[-2:])
    times = T.arange(0, shape[-1], rate, device=spectra.device, dtype=spectra.dtype.to_real())
    first_phase = spectra[..., :1].angle()
    spectra = F.pad(spectra, (0, 2))
    left, right = spectra.index_select(-1, times.long()), spectra.index_select(-1, (times + 1).long())
    turn = right.angle() - left.angle() - phase_advance
    turn = turn - 2 * math.pi * (turn / (2 * math.pi)).round() + phase_advance  # the nearest to what a steady tone turns
    phase = T.cat([first_phase, turn[..., :-1]], dim=-1).cumsum(-1)
    share = times % 1.0
    stretched = T.polar(share * right.abs() + (1 - share) * left.abs(), phase)
    made: Tensor = stretched.reshape(*shape[:-2], *stretched.shape[-2:])
    return made


def spectral_centroid(waveform: Tensor, sample_rate: int, pad: int, window: Tensor, n_fft: int, hop_length: int, win_length: int) -> Tensor:
    """(..., time) -> (..., frames): the mean frequency in Hz, weighted by the magnitudes."""
    magnitude = spectrogram(waveform, pad, window, n_fft, hop_length, win_length, 1.0, False)
    frequencies = T.linspace(0, sample_rate // 2, 1 + n_fft // 2, device=magnitude.device).reshape(-1, 1)
    return (frequencies * magnitude).sum(-2) / magnitude.sum(-2)


def require_floating(name: str, waveform: Tensor) -> None:
    """Refuse waveforms of whole numbers."""
    if not waveform.is_floating_point():
        raise DTypeError(f"{name}: the waveform is {waveform.dtype.name}; give a floating type")
