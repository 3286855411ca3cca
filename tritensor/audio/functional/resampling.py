"""Resampling by sinc interpolation under a window."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tritensor.audio import tensors as T
from tritensor.audio.functional.spectra import require_floating
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor

_OLDER = {"sinc_interpolation": "sinc_interp_hann", "kaiser_window": "sinc_interp_kaiser"}
KAISER_BETA = 14.769656459379492  # of a stop band of -150 dB


def make_kernel(
    orig_freq: int, new_freq: int, lowpass_filter_width: int, rolloff: float, resampling_method: str, beta: float | None, dtype: Any = None,
    device: Any = None,
) -> tuple[Tensor, int]:  # fmt: skip
    """(new, 1, taps) filters, one for each phase of the new rate, and how far they reach to the left. The rates have no common factor.

    Computed in dtype, or without one in float64 and rounded to float32."""
    if resampling_method in _OLDER:
        warnings.warn(f"resample: resampling_method {resampling_method!r} is called {_OLDER[resampling_method]!r} by now", stacklevel=3)
        resampling_method = _OLDER[resampling_method]
    if resampling_method not in _OLDER.values():
        raise ArgumentError(f'resample: resampling_method is {resampling_method!r}; give "sinc_interp_hann" or "sinc_interp_kaiser"')
    if lowpass_filter_width <= 0:
        raise ArgumentError(f"resample: lowpass_filter_width is {lowpass_filter_width}; give 1 or more")
    cutoff = min(orig_freq, new_freq) * rolloff
    width = math.ceil(lowpass_filter_width * orig_freq / cutoff)
    computed = {"dtype": dtype or "float64", "device": device}
    taps = T.arange(-width, width + orig_freq, **computed) / orig_freq
    phases = T.arange(0, -new_freq, -1, **computed).view(-1, 1, 1) / new_freq
    t = ((phases + taps) * cutoff).clamp(-lowpass_filter_width, lowpass_filter_width)
    if resampling_method == "sinc_interp_hann":
        window = (t * math.pi / lowpass_filter_width / 2).cos() ** 2
    else:
        shape = T.tensor(float(KAISER_BETA if beta is None else beta), dtype=t.dtype, device=device)
        window = T.i0(shape * (1 - (t / lowpass_filter_width) ** 2).sqrt()) / T.i0(shape)
    kernel = (t.sinc() * window) * (cutoff / orig_freq)
    return kernel if dtype is not None else kernel.float(), width


def apply_kernel(waveform: Tensor, orig_freq: int, new_freq: int, kernel: Tensor, width: int) -> Tensor:
    """(..., time) -> (..., ceil(time * new / orig))."""
    require_floating("resample", waveform)
    shape = waveform.shape
    padded = F.pad(waveform.reshape(-1, 1, shape[-1]), (width, width + orig_freq))
    made: Tensor = F.conv1d(padded, kernel, stride=orig_freq).transpose(1, 2)
    return made.reshape(*shape[:-1], -1)[..., : -(-new_freq * shape[-1] // orig_freq)]


def without_common_factor(orig_freq: Any, new_freq: Any) -> tuple[int, int]:
    """The rates divided by their common factor. Raises ValueError unless they are whole and above 0."""
    if int(orig_freq) != orig_freq or int(new_freq) != new_freq or orig_freq <= 0 or new_freq <= 0:
        raise ArgumentError(
            f"resample: from {orig_freq} to {new_freq}; give whole rates above 0 of the same ratio, as 8 and 1 for 44100 and 5512.5"
        )
    common = math.gcd(int(orig_freq), int(new_freq))
    return int(orig_freq) // common, int(new_freq) // common


def resample(
    waveform: Tensor, orig_freq: int, new_freq: int, lowpass_filter_width: int = 6, rolloff: float = 0.99,
    resampling_method: str = "sinc_interp_hann", beta: float | None = None,
) -> Tensor:  # fmt: skip
    """(..., time) -> (..., ceil(time * new_freq / orig_freq)), a floating waveform at another rate.

    A wider filter is sharper; rolloff: where it begins to fall, as a share of the lower half rate. Raises ValueError for rates and methods that are none.
    """
    source, target = without_common_factor(orig_freq, new_freq)
    if source == target:
        return waveform
    require_floating("resample", waveform)
    kernel, width = make_kernel(source, target, lowpass_filter_width, rolloff, resampling_method, beta, waveform.dtype, waveform.device)
    return apply_kernel(waveform, source, target, kernel, width)
