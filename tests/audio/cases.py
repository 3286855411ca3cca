"""Expressions over torchaudio's functions and transforms, evaluated there once and here in every test."""

from __future__ import annotations

from typing import Any

import numpy as np

CASES = [
    "T.Spectrogram(80)(x)", "T.Spectrogram(80, power=None, pad=5)(x)", "T.Spectrogram(80, normalized='window', power=1.0)(x)",
    "T.Spectrogram(80, normalized='frame_length', power=1.0)(x)", "T.Spectrogram(80, 60, 20, center=False, onesided=False)(x)",
    "T.InverseSpectrogram(80, normalized=True, pad=7)(T.Spectrogram(80, power=None, normalized=True, pad=7)(x), 900)",
    "T.InverseSpectrogram(80, normalized='frame_length')(T.Spectrogram(80, power=None)(x))",
    "F.griffinlim(sp.double(), w.double(), 80, 40, 80, 2.0, 6, 0.0, None, False)", "F.griffinlim(sp.double(), w.double(), 80, 40, 80, 1.0, 6, 0.9, 1170, False)",
    "T.GriffinLim(80, 6, rand_init=False)(sp)", "T.SpectralCentroid(16000, 80)(x)",
    "F.phase_vocoder(torch.stft(x.double(), 80, 40, window=w.double(), return_complex=True), 1.3, torch.linspace(0, 125.6, 41, dtype=torch.float64)[:, None])",
    "F.phase_vocoder(torch.stft(x.double(), 80, 40, window=w.double(), return_complex=True), 0.8, torch.linspace(0, 125.6, 41, dtype=torch.float64)[:, None])",
    "T.TimeStretch(40, 41, 1.0)(torch.stft(x, 80, 40, window=w, return_complex=True))", "T.TimeStretch(n_freq=41)(torch.stft(x, 80, 40, window=w, return_complex=True), 0.5).shape",
    "T.MelSpectrogram(16000, 200, n_mels=20)(x)", "T.MelSpectrogram(16000, 400, n_mels=20, norm='slaney', mel_scale='slaney', f_min=30, f_max=7000)(x)",
    "T.MFCC(16000, 13, melkwargs=dict(n_fft=400, n_mels=23))(x)", "T.MFCC(16000, 13, norm=None, log_mels=True, melkwargs=dict(n_fft=400, n_mels=23))(x)",
    "T.LFCC(16000, n_filter=30, n_lfcc=12)(x)", "T.LFCC(16000, n_filter=30, n_lfcc=12, log_lf=True, f_max=6000.0)(x)",
    "T.InverseMelScale(41, 10)(T.MelScale(10, n_stft=41)(sp))", "T.AmplitudeToDB(top_db=20.0)(sp)", "T.AmplitudeToDB('magnitude', 20.0)(sp.reshape(2, 1, 41, 30) * scales)",
    "F.amplitude_to_DB(sp, 10.0, 1e-3, 0.5)", "F.DB_to_amplitude(x, 2.0, 0.5)", "F.melscale_fbanks(101, 0.0, 4000.0, 20, 8000)",
    "F.melscale_fbanks(101, 20.0, 4000.0, 20, 8000, 'slaney', 'slaney')", "F.linear_fbanks(101, 0.0, 4000.0, 20, 8000)", "F.create_dct(5, 11, None)",
    "F.create_dct(5, 11, 'ortho')", "T.MuLawEncoding()(x.clamp(-1, 1))", "T.MuLawDecoding()(torch.arange(256))", "F.mu_law_decoding(torch.arange(16), 16)",
    "F.resample(x, 16000, 8000)", "F.resample(x, 8000, 11025)", "T.Resample(44100, 16000)(x)", "T.Resample(3, 5)(x[0])", "F.resample(x, 7, 7)",
    "F.resample(x, 3, 5, resampling_method='sinc_interp_kaiser', rolloff=0.9, lowpass_filter_width=8)", "T.Resample(3, 2, dtype=torch.float64)(x.double())",
    "F.resample(x, 5, 3, resampling_method='sinc_interp_kaiser', beta=6.0)",
    "T.ComputeDeltas()(sp)", "F.compute_deltas(sp, 7, 'constant')", "F.sliding_window_cmn(sp, 8, 4)", "F.sliding_window_cmn(sp, 8, 4, True)",
    "F.sliding_window_cmn(sp, 8, 4, False, True)", "T.SlidingWindowCmn(8, 4, True, True)(sp)", "T.SlidingWindowCmn()(sp[0])", "F.sliding_window_cmn(sp, 1, 1, True, True)",
    "F.detect_pitch_frequency(tone + 0.1 * tone.roll(7), 16000)", "F.detect_pitch_frequency(tone, 16000, 0.02, 12, 100, 2000)",
    "F.loudness(long, 8000)", "T.Loudness(8000)(long[None])",
    "F.lowpass_biquad(x, 16000, 900.0)", "F.lowpass_biquad(x, 16000, torch.tensor(900.0), 0.3)", "F.highpass_biquad(x, 16000, 900.0)", "F.allpass_biquad(x, 16000, 900.0, 0.4)",
    "F.band_biquad(x, 16000, 900.0, 0.4)", "F.band_biquad(x, 16000, 900.0, noise=True)", "F.bandpass_biquad(x, 16000, 900.0, 0.4)", "F.bandpass_biquad(x, 16000, 900.0, 0.4, True)",
    "F.bandreject_biquad(x, 16000, 900.0)", "F.equalizer_biquad(x, 16000, 900.0, 6.0)", "F.bass_biquad(x.double(), 16000, 6.0)", "F.treble_biquad(x.double(), 16000, -6.0)",
    "F.deemph_biquad(x, 44100)", "F.deemph_biquad(x, 48000)", "F.riaa_biquad(x, 44100)", "F.riaa_biquad(x, 96000)", "F.biquad(x, 0.4, 0.2, 0.9, 1.2, 0.2, 0.6)",
    "F.lfilter(x, a, b)", "F.lfilter(x, a, b, clamp=False)", "F.lfilter(x, aa, bb)", "F.lfilter(x, aa, bb, batching=False)", "F.lfilter(x[0], a, b)", "F.filtfilt(x, a, b)",
    "F.lfilter(x, a[:1], b[:1])", "F.lfilter(x[:, :100], a, b)", "F.lfilter(x.reshape(2, 2, 450), aa, bb, clamp=False)",
    "F.gain(x, 3.0)", "F.gain(x, 0.0)", "F.contrast(x)", "F.contrast(x, 10.0)", "F.dcshift(x, 0.5)", "F.dcshift(x.clone(), 0.5, 0.05)", "F.dcshift(x.clone(), -0.5, 0.05)",
    "F.overdrive(x)", "F.overdrive(x, 5, 50)", "F.preemphasis(x)", "T.Preemphasis(0.5)(x)", "F.deemphasis(x)", "T.Deemphasis(0.5)(x)",
    "F.pitch_shift(x.double(), 16000, 12, n_fft=256, window=torch.hann_window(256, dtype=torch.float64))", "T.PitchShift(16000, 0, n_fft=128)(x)", "T.PitchShift(16000, -12)(x).shape",
    "F.convolve(x, y)", "F.convolve(y, x, 'same')", "F.convolve(x, y, 'valid')", "T.Convolve('same')(x, y[:1])", "F.fftconvolve(x, y)", "F.fftconvolve(y, x, 'same')",
    "T.FFTConvolve('valid')(x[None], y[None, :1])", "F.add_noise(x, x.flip(0), torch.tensor([3.0, -2.0]))",
    "T.AddNoise()(x, x.flip(-1), torch.tensor([3.0, -2.0]), torch.tensor([100, 700]))", "F.speed(x, 16000, 1.1)[0]", "F.speed(x, 16000, 1.1, torch.tensor([100, 900]))[1]",
    "T.Speed(16000, 0.9)(x)[0]", "T.Speed(16000, 0.9)(x, torch.tensor([7, 9.0]))[1]", "F.edit_distance('kitten', 'sitting')", "F.edit_distance([], [1, 2])", "F.edit_distance([1, 2, 3], [2, 3, 1])",
    "F.frechet_distance(x[0, :2], x[:, :2] @ x[:, :2].T, x[1, :2], x[:, 2:4] @ x[:, 2:4].T)", "T.Fade(100, 300)(x)", "T.Fade(100, 300, 'exponential')(x)", "T.Fade(100, 0, 'logarithmic')(x)",
    "T.Fade(10, 30, 'logarithmic')(x)", "T.Fade(100, 300, 'quarter_sine')(x)", "T.Fade(100, 300, 'half_sine')(x)", "T.Vol(1.7)(x)", "T.Vol(1.7, 'db')(x)", "T.Vol(1.7, 'power')(x)",
]  # fmt: skip


def given(torch: Any) -> dict[str, Any]:
    """What the expressions are about, the same numbers in either library."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return torch.tensor((0.3 * rng.standard_normal(shape)).astype(np.float32))

    a, b = torch.tensor([1.5, -0.4, 0.3, 0.1]), torch.tensor([0.3, 0.2, 0.1, -0.2])
    return {
        "x": normal(2, 900), "y": normal(2, 100), "sp": normal(2, 41, 30).abs(), "long": normal(2, 8000), "w": torch.tensor((0.5 - 0.5 * np.cos(np.arange(80) * np.pi / 40)).astype(np.float32)),
        "tone": (torch.arange(6000.0) * 0.15).sin()[None] * torch.tensor([[1.0], [0.5]]), "scales": torch.tensor([1.0, 30.0]).view(2, 1, 1, 1),
        "a": a, "b": b, "aa": torch.stack([a, a * torch.tensor([1.0, 0.5, 0.2, 0.3])]), "bb": torch.stack([b, b * 2]),
    }  # fmt: skip


def figures(torch: Any, value: Any) -> dict[str, Any]:
    """Of a result its shape, type, the mean of its magnitudes, and seven of its numbers."""
    if not hasattr(value, "detach"):
        return {"value": list(value) if isinstance(value, tuple) else value}
    kind = str(value.dtype).rpartition(".")[2]
    flat = (torch.view_as_real(value) if value.is_complex() else value).detach().double().reshape(-1).numpy()
    at = np.linspace(0, flat.size - 1, 7).astype(int)
    told = {"shape": list(value.shape), "dtype": kind, "mean": float(np.abs(flat).mean()), "largest": float(np.abs(flat).max())}
    return {**told, "numbers": [float(v) for v in flat[at]]}
