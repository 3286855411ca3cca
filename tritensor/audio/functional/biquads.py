"""Filters of second order by what they do to a band: the Audio EQ Cookbook's (Bristow-Johnson), and SoX's.

Frequencies, gains and Q are numbers or tensors of one element, which then get gradients.
"""

from __future__ import annotations

import math
from typing import Any

from tritensor.audio import tensors as T
from tritensor.audio.functional.recursive_filters import lfilter
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def biquad(waveform: Tensor, b0: Any, b1: Any, b2: Any, a0: Any, a1: Any, a2: Any) -> Tensor:
    """lfilter with three coefficients each, numbers or tensors of one element; the result in -1 ... 1."""
    a, b = (T.cat([_number(c, waveform).view(1) for c in coefficients]) for coefficients in ((a0, a1, a2), (b0, b1, b2)))
    return lfilter(waveform, a, b)


def _number(value: Any, waveform: Tensor) -> Tensor:
    made: Tensor = T.as_tensor(value, dtype=waveform.dtype, device=waveform.device)
    return made


def _band(waveform: Tensor, sample_rate: int, frequency: Any, Q: Any) -> tuple[Tensor, Tensor]:
    """cos w0 and alpha = sin w0 / 2Q of the cookbook."""
    w0 = 2 * math.pi * _number(frequency, waveform) / sample_rate
    return w0.cos(), w0.sin() / 2 / _number(Q, waveform)


def lowpass_biquad(waveform: Tensor, sample_rate: int, cutoff_freq: Any, Q: Any = 0.707) -> Tensor:
    """What lies below a frequency."""
    cos, alpha = _band(waveform, sample_rate, cutoff_freq, Q)
    return biquad(waveform, (1 - cos) / 2, 1 - cos, (1 - cos) / 2, 1 + alpha, -2 * cos, 1 - alpha)


def highpass_biquad(waveform: Tensor, sample_rate: int, cutoff_freq: Any, Q: Any = 0.707) -> Tensor:
    """What lies above a frequency."""
    cos, alpha = _band(waveform, sample_rate, cutoff_freq, Q)
    return biquad(waveform, (1 + cos) / 2, -1 - cos, (1 + cos) / 2, 1 + alpha, -2 * cos, 1 - alpha)


def allpass_biquad(waveform: Tensor, sample_rate: int, central_freq: Any, Q: Any = 0.707) -> Tensor:
    """All of it, with other phases around a frequency."""
    cos, alpha = _band(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, 1 - alpha, -2 * cos, 1 + alpha, 1 + alpha, -2 * cos, 1 - alpha)


def bandpass_biquad(waveform: Tensor, sample_rate: int, central_freq: Any, Q: Any = 0.707, const_skirt_gain: bool = False) -> Tensor:
    """What lies around a frequency: a peak of 0 dB, or of Q with const_skirt_gain."""
    cos, alpha = _band(waveform, sample_rate, central_freq, Q)
    peak = alpha * _number(Q, waveform) if const_skirt_gain else alpha
    return biquad(waveform, peak, 0.0, -peak, 1 + alpha, -2 * cos, 1 - alpha)


def bandreject_biquad(waveform: Tensor, sample_rate: int, central_freq: Any, Q: Any = 0.707) -> Tensor:
    """All but what lies around a frequency."""
    cos, alpha = _band(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, 1.0, -2 * cos, 1.0, 1 + alpha, -2 * cos, 1 - alpha)


def equalizer_biquad(waveform: Tensor, sample_rate: int, center_freq: Any, gain: Any, Q: Any = 0.707) -> Tensor:
    """A band louder by `gain` dB."""
    cos, alpha = _band(waveform, sample_rate, center_freq, Q)
    A = _amplitude(gain, waveform)
    return biquad(waveform, 1 + alpha * A, -2 * cos, 1 - alpha * A, 1 + alpha / A, -2 * cos, 1 - alpha / A)


def _amplitude(gain: Any, waveform: Tensor) -> Tensor:
    return (_number(gain, waveform) / 40 * math.log(10)).exp()


def bass_biquad(waveform: Tensor, sample_rate: int, gain: Any, central_freq: Any = 100, Q: Any = 0.707) -> Tensor:
    """Below a frequency louder by `gain` dB."""
    cos, alpha = _band(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, *_shelf(cos, alpha, _amplitude(gain, waveform), 1.0))


def treble_biquad(waveform: Tensor, sample_rate: int, gain: Any, central_freq: Any = 3000, Q: Any = 0.707) -> Tensor:
    """Above a frequency louder by `gain` dB."""
    cos, alpha = _band(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, *_shelf(cos, alpha, _amplitude(gain, waveform), -1.0))


def _shelf(cos: Any, alpha: Any, A: Any, low: float) -> tuple[Any, ...]:
    """(b0, b1, b2, a0, a1, a2) of the cookbook's shelves: of the lower one with low = 1, of the upper one with -1."""
    slope, less, more = 2 * A**0.5 * alpha, low * (A - 1) * cos, low * (A + 1) * cos
    b = (A * (A + 1 - less + slope), low * 2 * A * (A - 1 - more), A * (A + 1 - less - slope))
    return (*b, A + 1 + less + slope, low * -2 * (A - 1 + more), A + 1 + less - slope)


def band_biquad(waveform: Tensor, sample_rate: int, central_freq: Any, Q: Any = 0.707, noise: bool = False) -> Tensor:
    """SoX's band: what lies around a frequency, falling off evenly; `noise` for sounds without a pitch."""
    frequency = _number(central_freq, waveform)
    a2 = (-2 * math.pi * (frequency / _number(Q, waveform)) / sample_rate).exp()
    a1 = -4 * a2 / (1 + a2) * (2 * math.pi * frequency / sample_rate).cos()
    b0 = (1 - a1 * a1 / (4 * a2)).sqrt() * (1 - a2)
    if noise:
        b0 = (((1 + a2) * (1 + a2) - a1 * a1) * (1 - a2) / (1 + a2)).sqrt()
    return biquad(waveform, b0, 0.0, 0.0, 1.0, a1, a2)


def deemph_biquad(waveform: Tensor, sample_rate: int) -> Tensor:
    """What takes the treble of early CDs back (ISO 908), a shelf. Raises ValueError unless the rate is 44100 or 48000."""
    known = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}
    if sample_rate not in known:
        raise ArgumentError(f"deemph_biquad: the sample rate is {sample_rate}; 44100 (CD) and 48000 (DAT) have an emphasis")
    frequency, slope, gain = known[sample_rate]
    w0, A = 2 * math.pi * frequency / sample_rate, 10 ** (gain / 40)
    alpha = math.sin(w0) / 2 * math.sqrt((A + 1 / A) * (1 / slope - 1) + 2)
    return biquad(waveform, *_shelf(math.cos(w0), alpha, A, -1.0))


_RIAA = {  # zeros and poles of the record players' curve at each sample rate, as SoX has them
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


def riaa_biquad(waveform: Tensor, sample_rate: int) -> Tensor:
    """The curve of record players, 0 dB at 1000 Hz. Raises ValueError for rates that it is not known for."""
    if sample_rate not in _RIAA:
        raise ArgumentError(f"riaa_biquad: the sample rate is {sample_rate}; give one of {', '.join(map(str, _RIAA))}")
    b, a = ((1.0, -(p + q), p * q) for p, q in _RIAA[sample_rate])
    z = [complex(math.cos(k * w), -math.sin(k * w)) for w in [2 * math.pi * 1000 / sample_rate] for k in range(3)]
    gain = abs(sum(c * u for c, u in zip(a, z, strict=True)) / sum(c * u for c, u in zip(b, z, strict=True)))
    return biquad(waveform, gain * b[0], gain * b[1], gain * b[2], *a)
