"""Layers between waveforms (..., time) and spectrograms (..., freq, frames)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from tritensor.audio import functional as F
from tritensor.audio import tensors as T
from tritensor.audio.functional.effects import cut_like, stretch
from tritensor.audio.functional.resampling import without_common_factor
from tritensor.ground.errors import ArgumentError
from tritensor.nn import Module
from tritensor.tensor.core import Tensor

Window = Callable[..., Tensor]


class _Framed(Module):
    """The sizes of frames and their window, a buffer."""

    window: Tensor

    def __init__(
        self, n_fft: int, win_length: int | None, hop_length: int | None, window_fn: Window, wkwargs: dict[str, Any] | None, hops: int = 2
    ) -> None:
        super().__init__()
        self.n_fft = n_fft
        self.win_length = n_fft if win_length is None else win_length
        self.hop_length = self.win_length // hops if hop_length is None else hop_length
        self.register_buffer("window", window_fn(self.win_length, **(wkwargs or {})))


class Spectrogram(_Framed):
    """|stft|^power, or the complex stft with power=None: see functional.spectrogram. win_length is n_fft, hop_length half of it where they are not given."""

    def __init__(
        self, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0, window_fn: Window = T.hann_window,
        power: float | None = 2.0, normalized: bool | str = False, wkwargs: dict[str, Any] | None = None, center: bool = True,
        pad_mode: str = "reflect", onesided: bool = True, return_complex: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.power, self.normalized = pad, power, normalized
        self.center, self.pad_mode, self.onesided = center, pad_mode, onesided
        if return_complex is not None:
            warnings.warn("Spectrogram: return_complex says nothing any more; power=None gives complex numbers", stacklevel=2)

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., n_fft // 2 + 1, frames)."""
        return F.spectrogram(
            waveform, self.pad, self.window, self.n_fft, self.hop_length, self.win_length, self.power, self.normalized, self.center, self.pad_mode,
            self.onesided,
        )  # fmt: skip


class InverseSpectrogram(_Framed):
    """The waveform of a complex spectrogram."""

    def __init__(
        self, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0, window_fn: Window = T.hann_window,
        normalized: bool | str = False, wkwargs: dict[str, Any] | None = None, center: bool = True, pad_mode: str = "reflect", onesided: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.normalized, self.center, self.pad_mode, self.onesided = pad, normalized, center, pad_mode, onesided

    def forward(self, spectrogram: Tensor, length: int | None = None) -> Tensor:
        """(..., freq, frames) -> (..., time)."""
        return F.inverse_spectrogram(
            spectrogram, length, self.pad, self.window, self.n_fft, self.hop_length, self.win_length, self.normalized, self.center, self.pad_mode,
            self.onesided,
        )  # fmt: skip


class GriffinLim(_Framed):
    """The waveform of a spectrogram without phases: see functional.griffinlim."""

    def __init__(
        self, n_fft: int = 400, n_iter: int = 32, win_length: int | None = None, hop_length: int | None = None, window_fn: Window = T.hann_window,
        power: float = 2.0, wkwargs: dict[str, Any] | None = None, momentum: float = 0.99, length: int | None = None, rand_init: bool = True,
    ) -> None:  # fmt: skip
        if not 0 <= momentum < 1:
            raise ArgumentError(f"GriffinLim: momentum is {momentum}; give a number in [0, 1)")
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.n_iter, self.power, self.momentum, self.length, self.rand_init = n_iter, power, momentum, length, rand_init

    def forward(self, specgram: Tensor) -> Tensor:
        """(..., freq, frames) -> (..., time)."""
        return F.griffinlim(
            specgram,
            self.window,
            self.n_fft,
            self.hop_length,
            self.win_length,
            self.power,
            self.n_iter,
            self.momentum,
            self.length,
            self.rand_init,
        )


class SpectralCentroid(_Framed):
    """The mean frequency in Hz of each frame, weighted by the magnitudes."""

    def __init__(
        self, sample_rate: int, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0,
        window_fn: Window = T.hann_window, wkwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.sample_rate, self.pad = sample_rate, pad

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., frames)."""
        return F.spectral_centroid(waveform, self.sample_rate, self.pad, self.window, self.n_fft, self.hop_length, self.win_length)


class TimeStretch(Module):
    """A complex spectrogram at another speed and the same pitch."""

    phase_advance: Tensor

    def __init__(self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None) -> None:
        super().__init__()
        self.fixed_rate = fixed_rate
        hop = n_freq - 1 if hop_length is None else hop_length
        self.register_buffer("phase_advance", T.linspace(0, math.pi * hop, n_freq)[..., None])

    def forward(self, complex_specgrams: Tensor, overriding_rate: float | None = None) -> Tensor:
        """(..., freq, frames) -> (..., freq, ceil(frames / rate)). Raises ValueError where no rate is given here or at first."""
        rate = self.fixed_rate if overriding_rate is None else overriding_rate
        if rate is None:
            raise ArgumentError("TimeStretch: no rate; give fixed_rate=, or overriding_rate to forward")
        if not complex_specgrams.is_complex():
            warnings.warn(
                "TimeStretch: the spectrogram is not complex, which has no phases to advance; use Spectrogram(power=None)", stacklevel=2
            )
        return F.phase_vocoder(complex_specgrams, rate, self.phase_advance)


class PitchShift(_Framed):
    """n_steps higher, of which an octave has bins_per_octave, and as long as before."""

    def __init__(
        self, sample_rate: int, n_steps: int, bins_per_octave: int = 12, n_fft: int = 512, win_length: int | None = None,
        hop_length: int | None = None, window_fn: Window = T.hann_window, wkwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs, hops=4)
        self.sample_rate, self.n_steps, self.bins_per_octave = sample_rate, n_steps, bins_per_octave
        self.orig_freq = int(sample_rate / 2.0 ** (-float(n_steps) / bins_per_octave))
        without_common_factor(self.orig_freq, sample_rate)

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., time)."""
        longer = stretch(waveform, self.n_steps, self.bins_per_octave, self.n_fft, self.win_length, self.hop_length, self.window)
        return cut_like(F.resample(longer, self.orig_freq, self.sample_rate), waveform.shape)
