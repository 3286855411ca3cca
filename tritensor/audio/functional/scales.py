"""Scales: banks of filters in Hz and mel, the cosine transform, decibels, the mu-law."""

from __future__ import annotations

import math
import warnings

from tritensor.audio import tensors as T
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor

# Slaney's scale: straight below 1000 Hz, 3 mel each 200 Hz; above it 27 mel for a factor of 6.4.
_HZ_A_MEL, _KNEE_HZ, _LOG_STEP = 200.0 / 3, 1000.0, math.log(6.4) / 27.0
_KNEE = _KNEE_HZ / _HZ_A_MEL


def _require_scale(mel_scale: str) -> None:
    if mel_scale not in ("htk", "slaney"):
        raise ArgumentError(f'mel_scale is {mel_scale!r}; give "htk" or "slaney"')


def _to_mel(hz: float, mel_scale: str) -> float:
    if mel_scale == "htk":
        return 2595.0 * math.log10(1.0 + hz / 700.0)
    return hz / _HZ_A_MEL if hz < _KNEE_HZ else _KNEE + math.log(hz / _KNEE_HZ) / _LOG_STEP


def _to_hz(mel: Tensor, mel_scale: str) -> Tensor:
    if mel_scale == "htk":
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    made: Tensor = T.where(mel < _KNEE, mel * _HZ_A_MEL, _KNEE_HZ * ((mel - _KNEE) * _LOG_STEP).exp())
    return made


def _triangles(frequencies: Tensor, corners: Tensor) -> Tensor:
    """(freqs,), (filters + 2,) -> (freqs, filters): each filter rises from its corner to the next, and falls to the one after."""
    widths = corners.diff()
    away = corners - frequencies.unsqueeze(1)  # (freqs, filters + 2)
    made: Tensor = T.minimum(-away[:, :-2] / widths[:-1], away[:, 2:] / widths[1:]).clamp(min=0.0)
    return made


def melscale_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int, norm: str | None = None, mel_scale: str = "htk"
) -> Tensor:
    """(n_freqs, n_mels): triangular filters, evenly spaced in mel. norm="slaney" gives each the same area."""
    if norm not in (None, "slaney"):
        raise ArgumentError(f'melscale_fbanks: norm is {norm!r}; give None or "slaney"')
    _require_scale(mel_scale)
    corners = _to_hz(T.linspace(_to_mel(f_min, mel_scale), _to_mel(f_max, mel_scale), n_mels + 2), mel_scale)
    bank = _triangles(T.linspace(0, sample_rate // 2, n_freqs), corners)
    if norm == "slaney":
        bank = bank * (2.0 / (corners[2:] - corners[:n_mels]))
    if bool((bank.amax(0) == 0).any()):
        warnings.warn(
            f"melscale_fbanks: some of the {n_mels} filters hold none of the {n_freqs} frequencies; give fewer filters or a longer transform",
            stacklevel=2,
        )
    return bank


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Tensor:
    """(n_freqs, n_filter): triangular filters, evenly spaced in Hz."""
    return _triangles(T.linspace(0, sample_rate // 2, n_freqs), T.linspace(f_min, f_max, n_filter + 2))


def create_dct(n_mfcc: int, n_mels: int, norm: str | None) -> Tensor:
    """(n_mels, n_mfcc): the cosine transform of type 2, orthogonal with norm="ortho"."""
    if norm not in (None, "ortho"):
        raise ArgumentError(f'create_dct: norm is {norm!r}; give None or "ortho"')
    rows = T.cat([T.arange(float(n_mels))]) + 0.5
    dct = (math.pi / n_mels * rows.unsqueeze(1) * T.arange(float(n_mfcc))).cos()
    if norm is None:
        made: Tensor = dct * 2.0
        return made
    scale = T.tensor([math.sqrt(1.0 / n_mels)] + [math.sqrt(2.0 / n_mels)] * (n_mfcc - 1))
    return dct * scale


def amplitude_to_DB(x: Tensor, multiplier: float, amin: float, db_multiplier: float, top_db: float | None = None) -> Tensor:
    """multiplier * (log10(max(x, amin)) - db_multiplier), of each (channel, freq, time) of a batch no more than top_db below its largest."""
    db = multiplier * x.clamp(min=amin).log10() - multiplier * db_multiplier
    if top_db is None:
        return db
    packed = db.reshape(-1, db.shape[-3] if db.dim() > 2 else 1, *db.shape[-2:])
    made: Tensor = T.maximum(packed, packed.amax((-3, -2, -1), keepdim=True) - top_db).reshape(db.shape)
    return made


def DB_to_amplitude(x: Tensor, ref: float, power: float) -> Tensor:
    """ref * (10 ** (x / 10)) ** power: power 1 gives a power, 0.5 an amplitude."""
    made: Tensor = ref * (10.0 ** (0.1 * x)) ** power
    return made


def mu_law_encoding(x: Tensor, quantization_channels: int) -> Tensor:
    """A signal in -1 ... 1 as int64 steps 0 ... quantization_channels - 1, finer near 0."""
    if not x.is_floating_point():
        warnings.warn(f"mu_law_encoding: x is {x.dtype.name}, and taken as float32; give a floating signal in -1 ... 1", stacklevel=2)
        x = x.float()
    mu = quantization_channels - 1.0
    squeezed = x.sign() * (mu * x.abs()).log1p() / math.log1p(mu)
    return ((squeezed + 1) / 2 * mu + 0.5).long()


def mu_law_decoding(x_mu: Tensor, quantization_channels: int) -> Tensor:
    """The signal in -1 ... 1 of mu_law_encoding's steps."""
    mu = quantization_channels - 1.0
    x = (x_mu if x_mu.is_floating_point() else x_mu.float()) / mu * 2 - 1.0
    return x.sign() * ((x.abs() * math.log1p(mu)).exp() - 1.0) / mu
