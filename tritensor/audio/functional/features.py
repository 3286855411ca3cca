"""Features over frames: deltas, normalisation in a sliding window, pitch, loudness."""

from __future__ import annotations

import math

from tritensor.audio import tensors as T
from tritensor.audio.functional.biquads import highpass_biquad, treble_biquad
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


def compute_deltas(specgram: Tensor, win_length: int = 5, mode: str = "replicate") -> Tensor:
    """(..., freq, time): the slope in time of each frequency, by least squares over win_length frames. `mode`: how the ends are padded."""
    if win_length < 3:
        raise ArgumentError(f"compute_deltas: win_length is {win_length}; give 3 or more")
    n = (win_length - 1) // 2
    rows = specgram.reshape(1, -1, specgram.shape[-1])
    slope = T.arange(-n, n + 1, device=specgram.device, dtype=specgram.dtype).repeat(rows.shape[1], 1, 1)
    made: Tensor = F.conv1d(F.pad(rows, (n, n), mode=mode), slope, groups=rows.shape[1]) / (n * (n + 1) * (2 * n + 1) / 3)
    return made.reshape(specgram.shape)


def _window(t: int, frames: int, size: int, least: int, center: bool) -> tuple[int, int]:
    """First and last frame (exclusive) of the window that frame t is normalised by."""
    start, end = (t - size // 2, t - size // 2 + size) if center else (t - size, t + 1)
    if start < 0:
        start, end = 0, end - start
    if not center and end > t:
        end = max(t + 1, least)
    if end > frames:
        start, end = max(0, start - (end - frames)), frames
    return start, end


def sliding_window_cmn(
    specgram: Tensor, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False
) -> Tensor:
    """(..., time, freq): each frame without the mean of the cmn_window frames before it (around it with `center`), by the deviation with norm_vars."""
    frames = specgram.shape[-2]
    ends = T.tensor([_window(t, frames, cmn_window, min_cmn_window, center) for t in range(frames)], device=specgram.device)
    counts = (ends[:, 1] - ends[:, 0]).to(specgram.dtype).unsqueeze(-1)

    def mean(x: Tensor) -> Tensor:
        sums = F.pad(x.double().cumsum(-2), (0, 0, 1, 0))  # a running sum rounds away less in float64
        found: Tensor = (sums.index_select(-2, ends[:, 1]) - sums.index_select(-2, ends[:, 0])).to(x.dtype) / counts
        return found

    middle = mean(specgram)
    moved = specgram - middle
    if not norm_vars:
        return moved
    made: Tensor = T.where(counts == 1, T.zeros(1, dtype=moved.dtype, device=moved.device), moved * (mean(specgram**2) - middle**2) ** -0.5)
    return made


def detect_pitch_frequency(
    waveform: Tensor, sample_rate: int, frame_time: float = 0.01, win_length: int = 30, freq_low: int = 85, freq_high: int = 3400
) -> Tensor:
    """(..., time) -> (..., frames): the pitch in Hz, where a frame is most like itself later, smoothed by medians over win_length frames."""
    lags, size = math.ceil(sample_rate / freq_low), math.ceil(sample_rate * frame_time)
    frames = math.ceil(waveform.shape[-1] / size)
    padded = F.pad(waveform, (0, lags + frames * size - waveform.shape[-1]))

    def cut(start: int) -> Tensor:
        return padded[..., start : start + frames * size].reshape(*waveform.shape[:-1], frames, size)

    def energy(frame: Tensor) -> Tensor:
        return (frame.square().sum(-1).sqrt() + 1e-9) ** 2

    here = cut(0)
    likeness = T.stack([(here * cut(lag)).sum(-1) / energy(here) / energy(cut(lag)) for lag in range(1, lags + 1)], -1)
    least = math.ceil(sample_rate / freq_high)
    best, at = likeness[..., least:].max(-1)
    sooner, sooner_at = likeness[..., least : likeness.shape[-1] // 2].max(-1)  # half the lag is likelier, where it is nearly as good
    lag = T.where(sooner > 0.99 * best, sooner_at, at) + least + 1
    before = (win_length - 1) // 2
    lag = T.cat([lag[..., :1].expand(*lag.shape[:-1], before), lag], -1).unfold(-1, win_length, 1).median(-1)[0]
    made: Tensor = sample_rate / (lag.float() + 1e-9)
    return made


def loudness(waveform: Tensor, sample_rate: int) -> Tensor:
    """(..., channels, time) -> (...): the loudness in LKFS (ITU-R BS.1770-4). Raises ValueError for more than 5 channels."""
    channels = waveform.shape[-2]
    if channels > 5:
        raise ArgumentError(f"loudness: {channels} channels; give 1 to 5")
    block = round(0.4 * sample_rate)
    weighted = highpass_biquad(treble_biquad(waveform, sample_rate, 4.0, 1500.0, 1 / math.sqrt(2)), sample_rate, 38.0, 0.5)
    energy = weighted.square().unfold(-1, block, round(block * 0.25)).mean(-1)  # (..., channels, blocks)
    weights = T.tensor([1.0, 1.0, 1.0, 1.41, 1.41][:channels], dtype=waveform.dtype, device=waveform.device)

    def level(power: Tensor) -> Tensor:
        return -0.691 + 10 * power.log10()

    def gated_level(gate: Tensor) -> Tensor:
        mean = (gate.unsqueeze(-2) * energy).sum(-1) / gate.unsqueeze(-2).sum(-1)
        return level((weights * mean).sum(-1))

    levels = level((weights.unsqueeze(-1) * energy).sum(-2))
    audible = levels > -70.0
    return gated_level(audible & (levels > gated_level(audible).unsqueeze(-1) - 10))
