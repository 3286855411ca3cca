"""Layers that compute features: mel spectrograms, cepstra, decibels, deltas."""

from __future__ import annotations

import math
from typing import Any

from tritensor.audio import functional as F
from tritensor.audio import tensors as T
from tritensor.audio.transforms.spectra import Spectrogram, Window
from tritensor.ground.errors import ArgumentError
from tritensor.nn import Module
from tritensor.tensor.core import Tensor


def _filtered(specgram: Tensor, bank: Tensor) -> Tensor:
    """(..., freq, time), (freq, n) -> (..., n, time)."""
    made: Tensor = T.matmul(specgram.transpose(-1, -2), bank).transpose(-1, -2)
    return made


class AmplitudeToDB(Module):
    """Decibels of powers, or with stype="magnitude" of amplitudes; no more than top_db below the largest."""

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        super().__init__()
        if top_db is not None and top_db < 0:
            raise ArgumentError(f"AmplitudeToDB: top_db is {top_db}; give a number above 0")
        self.stype, self.top_db = stype, top_db
        self.multiplier = 10.0 if stype == "power" else 20.0
        self.amin, self.ref_value = 1e-10, 1.0
        self.db_multiplier = math.log10(max(self.amin, self.ref_value))

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same."""
        return F.amplitude_to_DB(x, self.multiplier, self.amin, self.db_multiplier, self.top_db)


class MelScale(Module):
    """A spectrogram's frequencies gathered by triangular filters that are evenly spaced in mel: see functional.melscale_fbanks."""

    fb: Tensor

    def __init__(
        self, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0, f_max: float | None = None, n_stft: int = 201,
        norm: str | None = None, mel_scale: str = "htk",
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_mels, self.sample_rate, self.f_min, self.n_stft, self.norm, self.mel_scale = (
            n_mels,
            sample_rate,
            f_min,
            n_stft,
            norm,
            mel_scale,
        )
        self.f_max = float(sample_rate // 2) if f_max is None else f_max
        if f_min > self.f_max:
            raise ArgumentError(f"{type(self).__name__}: f_min {f_min} is above f_max {self.f_max}")
        self.register_buffer("fb", F.melscale_fbanks(n_stft, f_min, self.f_max, n_mels, sample_rate, norm, mel_scale))

    def forward(self, specgram: Tensor) -> Tensor:
        """(..., n_stft, frames) -> (..., n_mels, frames)."""
        return _filtered(specgram, self.fb)


class InverseMelScale(MelScale):
    """The spectrogram of a mel spectrogram by least squares, what comes out below 0 set to 0."""

    def __init__(
        self, n_stft: int, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0, f_max: float | None = None,
        norm: str | None = None, mel_scale: str = "htk", driver: str = "gels",
    ) -> None:  # fmt: skip
        if driver not in ("gels", "gelsy", "gelsd", "gelss"):
            raise ArgumentError(f"InverseMelScale: driver is {driver!r}; give gels, gelsy, gelsd or gelss")
        super().__init__(n_mels, sample_rate, f_min, f_max, n_stft, norm, mel_scale)
        self.driver = driver

    def forward(self, melspec: Tensor) -> Tensor:
        """(..., n_mels, frames) -> (..., n_stft, frames)."""
        if melspec.shape[-2] != self.n_mels:
            raise ArgumentError(f"InverseMelScale: a spectrogram of shape {tuple(melspec.shape)}; give (..., {self.n_mels}, frames)")
        rows = melspec.reshape(-1, *melspec.shape[-2:])
        found: Tensor = T.lstsq(self.fb.t()[None].expand(rows.shape[0], -1, -1), rows, driver=self.driver).solution
        return found.relu().reshape(*melspec.shape[:-2], self.n_stft, melspec.shape[-1])


class MelSpectrogram(Module):
    """Spectrogram and MelScale."""

    def __init__(
        self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, f_min: float = 0.0,
        f_max: float | None = None, pad: int = 0, n_mels: int = 128, window_fn: Window = T.hann_window, power: float = 2.0,
        normalized: bool = False, wkwargs: dict[str, Any] | None = None, center: bool = True, pad_mode: str = "reflect",
        onesided: bool | None = None, norm: str | None = None, mel_scale: str = "htk",
    ) -> None:  # fmt: skip
        super().__init__()
        self.spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode, onesided=True
        )
        self.sample_rate, self.n_fft, self.pad, self.power, self.normalized, self.n_mels = (
            sample_rate,
            n_fft,
            pad,
            power,
            normalized,
            n_mels,
        )
        self.win_length, self.hop_length, self.f_min, self.f_max = self.spectrogram.win_length, self.spectrogram.hop_length, f_min, f_max
        self.mel_scale = MelScale(n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale)

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., n_mels, frames)."""
        made: Tensor = self.mel_scale(self.spectrogram(waveform))
        return made


class _Cepstrum(Module):
    """The cosine transform of a filtered spectrogram's logarithm."""

    dct_mat: Tensor

    def __init__(self, sample_rate: int, kept: int, filters: int, dct_type: int, norm: str) -> None:
        super().__init__()
        if dct_type != 2:
            raise ArgumentError(f"{type(self).__name__}: dct_type is {dct_type}; the transform of type 2 is here")
        self.sample_rate, self.dct_type, self.norm, self.top_db = sample_rate, dct_type, norm, 80.0
        self.amplitude_to_DB = AmplitudeToDB("power", self.top_db)
        self.register_buffer("dct_mat", F.create_dct(kept, filters, norm))

    def _transform(self, specgram: Tensor, natural: bool) -> Tensor:
        return _filtered((specgram + 1e-6).log() if natural else self.amplitude_to_DB(specgram), self.dct_mat)


class MFCC(_Cepstrum):
    """Cepstral coefficients of a mel spectrogram: of decibels, or with log_mels of natural logarithms."""

    def __init__(
        self, sample_rate: int = 16000, n_mfcc: int = 40, dct_type: int = 2, norm: str = "ortho", log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        mel = MelSpectrogram(sample_rate=sample_rate, **(melkwargs or {}))
        if n_mfcc > mel.n_mels:
            raise ArgumentError(f"MFCC: {n_mfcc} coefficients of {mel.n_mels} mel filters; give no more than filters")
        super().__init__(sample_rate, n_mfcc, mel.n_mels, dct_type, norm)
        self.n_mfcc, self.log_mels, self.MelSpectrogram = n_mfcc, log_mels, mel

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., n_mfcc, frames)."""
        return self._transform(self.MelSpectrogram(waveform), self.log_mels)


class LFCC(_Cepstrum):
    """Cepstral coefficients of a spectrogram gathered by filters that are evenly spaced in Hz."""

    filter_mat: Tensor

    def __init__(
        self, sample_rate: int = 16000, n_filter: int = 128, f_min: float = 0.0, f_max: float | None = None, n_lfcc: int = 40, dct_type: int = 2,
        norm: str = "ortho", log_lf: bool = False, speckwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        spectrogram = Spectrogram(**(speckwargs or {}))
        if n_lfcc > spectrogram.n_fft:
            raise ArgumentError(f"LFCC: {n_lfcc} coefficients of a transform over {spectrogram.n_fft} samples; give no more")
        super().__init__(sample_rate, n_lfcc, n_filter, dct_type, norm)
        self.f_min, self.f_max = f_min, float(sample_rate // 2) if f_max is None else f_max
        self.n_filter, self.n_lfcc, self.log_lf, self.Spectrogram = n_filter, n_lfcc, log_lf, spectrogram
        self.register_buffer("filter_mat", F.linear_fbanks(spectrogram.n_fft // 2 + 1, f_min, self.f_max, n_filter, sample_rate))

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., n_lfcc, frames)."""
        return self._transform(_filtered(self.Spectrogram(waveform), self.filter_mat), self.log_lf)


class ComputeDeltas(Module):
    """The slope in time of each feature: see functional.compute_deltas."""

    def __init__(self, win_length: int = 5, mode: str = "replicate") -> None:
        super().__init__()
        self.win_length, self.mode = win_length, mode

    def forward(self, specgram: Tensor) -> Tensor:
        """(..., freq, time) -> the same."""
        return F.compute_deltas(specgram, self.win_length, self.mode)


class SlidingWindowCmn(Module):
    """Each frame without the mean of those around: see functional.sliding_window_cmn."""

    def __init__(self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False) -> None:
        super().__init__()
        self.cmn_window, self.min_cmn_window, self.center, self.norm_vars = cmn_window, min_cmn_window, center, norm_vars

    def forward(self, specgram: Tensor) -> Tensor:
        """(..., time, freq) -> the same."""
        return F.sliding_window_cmn(specgram, self.cmn_window, self.min_cmn_window, self.center, self.norm_vars)


class Loudness(Module):
    """The loudness in LKFS: see functional.loudness."""

    def __init__(self, sample_rate: int) -> None:
        super().__init__()
        self.sample_rate = sample_rate

    def forward(self, wavefrom: Tensor) -> Tensor:  # torchaudio's spelling, which callers write
        """(..., channels, time) -> (...)."""
        return F.loudness(wavefrom, self.sample_rate)
