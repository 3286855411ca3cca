"""Layers from waveforms (..., time) to waveforms: rate, speed, volume, fades, noise, convolution, the mu-law."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.audio import functional as F
from tritensor.audio import tensors as T
from tritensor.audio.functional import resampling
from tritensor.audio.functional.effects import reduced_rates, scaled_lengths
from tritensor.audio.functional.mixing import require_mode
from tritensor.ground.errors import ArgumentError
from tritensor.nn import Module, ModuleList
from tritensor.tensor.core import Tensor


class Resample(Module):
    """functional.resample with the filters computed once, in float64 and rounded to float32, or in `dtype`."""

    kernel: Tensor

    def __init__(
        self, orig_freq: int = 16000, new_freq: int = 16000, resampling_method: str = "sinc_interp_hann", lowpass_filter_width: int = 6,
        rolloff: float = 0.99, beta: float | None = None, *, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.orig_freq, self.new_freq, self.resampling_method = orig_freq, new_freq, resampling_method
        self.lowpass_filter_width, self.rolloff, self.beta = lowpass_filter_width, rolloff, beta
        self._rates = resampling.without_common_factor(orig_freq, new_freq)
        if orig_freq != new_freq:
            kernel, self.width = resampling.make_kernel(*self._rates, lowpass_filter_width, rolloff, resampling_method, beta, dtype)
            self.register_buffer("kernel", kernel)

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> (..., ceil(time * new_freq / orig_freq))."""
        return waveform if self.orig_freq == self.new_freq else resampling.apply_kernel(waveform, *self._rates, self.kernel, self.width)


class Speed(Module):
    """Faster and higher by a factor."""

    def __init__(self, orig_freq: int, factor: float) -> None:
        super().__init__()
        self.orig_freq, self.factor = orig_freq, factor
        self.source_sample_rate, self.target_sample_rate = reduced_rates(orig_freq, factor)
        self.resampler = Resample(self.source_sample_rate, self.target_sample_rate)

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """(..., time) and lengths (...) -> both of the result."""
        return self.resampler(waveform), scaled_lengths(lengths, self.source_sample_rate, self.target_sample_rate)


class SpeedPerturbation(Module):
    """Speed by one of the factors, drawn at each call."""

    def __init__(self, orig_freq: int, factors: Sequence[float]) -> None:
        super().__init__()
        self.speeders = ModuleList([Speed(orig_freq, factor) for factor in factors])

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """As Speed."""
        made: tuple[Tensor, Tensor | None] = self.speeders[int(T.randint(len(self.speeders), (1,)).item())](waveform, lengths)
        return made


_SHAPES: dict[
    str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]
] = {  # of a share 0 ... 1 of the way: coming in, and going out
    "linear": (lambda s: s, lambda s: 1 - s),
    "exponential": (lambda s: 2.0 ** (s - 1) * s, lambda s: 2.0**-s * (1 - s)),
    "logarithmic": (lambda s: (0.1 + s).log10() + 1, lambda s: (1.1 - s).log10() + 1),
    "quarter_sine": (lambda s: (s * math.pi / 2).sin(), lambda s: (s * math.pi / 2).cos()),
    "half_sine": (lambda s: 0.5 - (s * math.pi).cos() / 2, lambda s: 0.5 + (s * math.pi).cos() / 2),
}


class Fade(Module):
    """A waveform whose first fade_in_len samples come in, and whose last fade_out_len go out. Raises ValueError for a shape that is none."""

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: str = "linear") -> None:
        super().__init__()
        if fade_shape not in _SHAPES:
            raise ArgumentError(f"Fade: fade_shape is {fade_shape!r}; give one of {', '.join(map(repr, _SHAPES))}")
        self.fade_in_len, self.fade_out_len, self.fade_shape = fade_in_len, fade_out_len, fade_shape

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> the same."""
        time, device = waveform.shape[-1], waveform.device
        comes, goes = _SHAPES[self.fade_shape]
        start = T.cat([comes(T.linspace(0, 1, self.fade_in_len, device=device)), T.ones(time - self.fade_in_len, device=device)])
        end = T.cat([T.ones(time - self.fade_out_len, device=device), goes(T.linspace(0, 1, self.fade_out_len, device=device))])
        made: Tensor = start.clamp(0, 1) * end.clamp(0, 1) * waveform
        return made


class Vol(Module):
    """Louder by a factor, or by "db", or by a factor of the "power"; the result in -1 ... 1."""

    def __init__(self, gain: float, gain_type: str = "amplitude") -> None:
        super().__init__()
        if gain_type in ("amplitude", "power") and gain < 0:
            raise ArgumentError(f"Vol: gain is {gain}; a factor is not below 0")
        self.gain, self.gain_type = gain, gain_type

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> the same."""
        if self.gain_type == "amplitude":
            waveform = waveform * self.gain
        elif self.gain_type in ("db", "power"):
            waveform = F.gain(waveform, self.gain if self.gain_type == "db" else 10 * math.log10(self.gain))
        return waveform.clamp(-1, 1)


class MuLawEncoding(Module):
    """A signal in -1 ... 1 as whole steps."""

    def __init__(self, quantization_channels: int = 256) -> None:
        super().__init__()
        self.quantization_channels = quantization_channels

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> int64 of the same."""
        return F.mu_law_encoding(x, self.quantization_channels)


class MuLawDecoding(MuLawEncoding):
    """Whole steps as a signal in -1 ... 1."""

    def forward(self, x_mu: Tensor) -> Tensor:
        """Any shape -> the same."""
        return F.mu_law_decoding(x_mu, self.quantization_channels)


class Preemphasis(Module):
    """y[t] = x[t] - coeff x[t - 1]."""

    def __init__(self, coeff: float = 0.97) -> None:
        super().__init__()
        self.coeff = coeff

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> the same."""
        return F.preemphasis(waveform, self.coeff)


class Deemphasis(Preemphasis):
    """y[t] = x[t] + coeff y[t - 1]."""

    def forward(self, waveform: Tensor) -> Tensor:
        """(..., time) -> the same."""
        return F.deemphasis(waveform, self.coeff)


class Convolve(Module):
    """functional.convolve."""

    def __init__(self, mode: str = "full") -> None:
        require_mode(type(self).__name__, mode)
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., m), (..., n) -> what the mode keeps."""
        return F.convolve(x, y, self.mode)


class FFTConvolve(Convolve):
    """functional.fftconvolve."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., m), (..., n) -> what the mode keeps."""
        return F.fftconvolve(x, y, self.mode)


class AddNoise(Module):
    """functional.add_noise."""

    def forward(self, waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(..., time), (..., time), (...) -> (..., time)."""
        return F.add_noise(waveform, noise, snr, lengths)
