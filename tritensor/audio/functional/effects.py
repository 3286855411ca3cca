"""Effects on waveforms: gain, contrast, shift, overdrive, emphasis, and another speed or pitch."""

from __future__ import annotations

import math

from tritensor.audio import tensors as T
from tritensor.audio.functional.recursive_filters import lfilter
from tritensor.audio.functional.resampling import resample
from tritensor.audio.functional.spectra import phase_vocoder
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


def gain(waveform: Tensor, gain_db: float = 1.0) -> Tensor:
    """Louder by gain_db."""
    return waveform if gain_db == 0 else waveform * 10 ** (gain_db / 20)


def contrast(waveform: Tensor, enhancement_amount: float = 75.0) -> Tensor:
    """SoX's contrast, which makes the loud louder. Raises ValueError unless the amount is in 0 ... 100."""
    if not 0 <= enhancement_amount <= 100:
        raise ArgumentError(f"contrast: enhancement_amount is {enhancement_amount}; give 0 to 100")
    angle = waveform * (math.pi / 2)
    return (angle + enhancement_amount / 750 * (angle * 4).sin()).sin()


def dcshift(waveform: Tensor, shift: float, limiter_gain: float | None = None) -> Tensor:
    """The waveform plus a constant, in -1 ... 1. With limiter_gain peaks beyond 1 - |shift| + limiter_gain are squeezed first."""
    if limiter_gain is None or shift == 0:
        return (waveform + shift).clamp(-1, 1)
    sign = math.copysign(1.0, shift)
    limit = 1.0 - (abs(shift) - limiter_gain)
    upright, up = waveform * sign, abs(shift)
    squeezed = ((upright - limit) * limiter_gain / (1 - limit) + limit + up).clamp(max=limit)
    made: Tensor = T.where(upright > limit, squeezed, (upright + up).clamp(-1, 1))
    return made * sign


def overdrive(waveform: Tensor, gain: float = 20, colour: float = 20) -> Tensor:
    """SoX's overdrive: amplified by `gain` dB, bent by a cubic, `colour` of even harmonics, half of the sound left as it is."""
    driven = (waveform * 10 ** (gain / 20) + colour / 200).clamp(-1, 1)
    bent = driven - driven**3 / 3
    through, back = (T.tensor(c, dtype=waveform.dtype, device=waveform.device) for c in ([1.0, -1.0], [1.0, -0.995]))
    return (waveform * 0.5 + lfilter(bent, back, through, clamp=False) * 0.75).clamp(-1, 1)


def preemphasis(waveform: Tensor, coeff: float = 0.97) -> Tensor:
    """y[t] = x[t] - coeff x[t - 1]."""
    made: Tensor = T.cat([waveform[..., :1], waveform[..., 1:] - coeff * waveform[..., :-1]], -1)
    return made


def deemphasis(waveform: Tensor, coeff: float = 0.97) -> Tensor:
    """y[t] = x[t] + coeff y[t - 1], which takes preemphasis back; the result in -1 ... 1."""
    a, b = (T.tensor(c, dtype=waveform.dtype, device=waveform.device) for c in ([1.0, -coeff], [1.0, 0.0]))
    return lfilter(waveform, a, b)


def reduced_rates(orig_freq: int, factor: float) -> tuple[int, int]:
    """(from, to): the rates, without common factor, between which resampling plays `factor` times as fast."""
    source, target = int(factor * orig_freq), int(orig_freq)
    common = math.gcd(source, target)
    return source // common, target // common


def speed(waveform: Tensor, orig_freq: int, factor: float, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """(..., time) -> (..., ceil(time / factor)), faster and higher by a factor; and the lengths, where they are given, of the result."""
    source, target = reduced_rates(orig_freq, factor)
    return resample(waveform, source, target), scaled_lengths(lengths, source, target)


def scaled_lengths(lengths: Tensor | None, source: int, target: int) -> Tensor | None:
    """The lengths of waveforms after resampling."""
    return None if lengths is None else (lengths * target / source).ceil().to(lengths.dtype)


def stretch(
    waveform: Tensor, n_steps: int, bins_per_octave: int = 12, n_fft: int = 512, win_length: int | None = None, hop_length: int | None = None,
    window: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(batch, longer or shorter time): the waveforms at such a speed that resampling moves them n_steps up."""
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    window = T.hann_window(width, device=waveform.device) if window is None else window
    rate = 2.0 ** (-float(n_steps) / bins_per_octave)
    flat = waveform.reshape(-1, waveform.shape[-1])
    spectra = T.stft(flat, n_fft, hop, width, window=window, center=True, pad_mode="reflect", return_complex=True)
    advance = T.linspace(0, math.pi * hop, spectra.shape[-2], device=waveform.device)[..., None]
    made: Tensor = T.istft(phase_vocoder(spectra, rate, advance), n_fft, hop, width, window=window, length=round(flat.shape[-1] / rate))
    return made


def cut_like(waveform: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A waveform cut, or filled with silence, to a shape."""
    length = shape[-1]
    made: Tensor = F.pad(waveform, (0, max(0, length - waveform.shape[-1])))[..., :length]
    return made.reshape(shape)


def pitch_shift(
    waveform: Tensor, sample_rate: int, n_steps: int, bins_per_octave: int = 12, n_fft: int = 512, win_length: int | None = None,
    hop_length: int | None = None, window: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(..., time): n_steps higher, of which an octave has bins_per_octave, and as long as before."""
    rate = 2.0 ** (-float(n_steps) / bins_per_octave)
    stretched = stretch(waveform, n_steps, bins_per_octave, n_fft, win_length, hop_length, window)
    return cut_like(resample(stretched, int(sample_rate / rate), sample_rate), waveform.shape)
