"""Gradients of recursive filters, masks, WAV files, what layers keep, what is refused, and the way in by `import torchaudio`."""

from __future__ import annotations

import importlib
import io
import wave
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.audio import functional as F
from tritensor.audio import load, save
from tritensor.audio import transforms as T
from tritensor.tools import run_script


def filters(rows: int = 2) -> tuple[tt.Tensor, tt.Tensor]:
    a = tt.tensor([[1.5, -0.4, 0.3, 0.1], [1.2, 0.2, -0.1, 0.05]], dtype=tt.float64)
    b = tt.tensor([[0.3, 0.2, 0.1, -0.2], [0.6, 0.4, 0.2, -0.4]], dtype=tt.float64)
    return a[:rows].requires_grad_(), b[:rows].requires_grad_()


def test_gradients_of_a_recursive_filter_are_its_derivatives() -> None:
    x = tt.tensor(np.random.default_rng(0).standard_normal((1, 2, 9)), requires_grad=True)
    assert tt.autograd.gradcheck(lambda *given: F.lfilter(*given, clamp=False), (x, *filters()))
    assert tt.autograd.gradgradcheck(lambda *given: F.lfilter(*given, clamp=False), (x[..., :4].detach().requires_grad_(), *filters()))


def test_a_filter_over_many_blocks_is_the_recursion() -> None:
    x = np.random.default_rng(0).standard_normal(300)
    a, b = (c.detach().numpy()[0] for c in filters(1))
    y = np.zeros(300)
    for t in range(300):
        y[t] = (sum(b[k] * x[t - k] for k in range(4) if t >= k) - sum(a[k] * y[t - k] for k in range(1, 4) if t >= k)) / a[0]
    found = F.lfilter(tt.tensor(x), tt.tensor(a), tt.tensor(b), clamp=False)
    assert np.allclose(found.numpy(), y, atol=1e-12)


def test_a_filters_frequency_has_a_gradient() -> None:
    cutoff = tt.tensor(900.0, requires_grad=True)
    F.lowpass_biquad(tt.linspace(-1, 1, 64), 16000, cutoff).square().sum().backward()
    assert cutoff.grad.item() != 0


@pytest.mark.parametrize("iid", [False, True])
def test_masks_are_stretches_that_are_narrower_than_asked(iid: bool) -> None:
    tt.manual_seed(0)
    x = tt.ones(8, 3, 20, 50)
    for layer, axis, widest in (
        (T.TimeMasking(7, iid), -1, 6),
        (T.FrequencyMasking(5, iid), -2, 4),
        (T.TimeMasking(40, iid, p=0.1), -1, 4),
    ):
        masked = layer(x, 5.0) == 5
        lines = masked.any(-2 if axis == -1 else -1)  # (8, 3, size)
        assert int(lines.sum(-1).max()) <= widest
        assert int((lines.int().diff(dim=-1) == 1).sum(-1).max()) <= 1
        assert bool((lines == lines[:1, :1]).all()) is not iid
        assert bool((masked == lines.unsqueeze(-2 if axis == -1 else -1)).all())


def test_masks_fill_with_the_mean_or_with_zeros() -> None:
    tt.manual_seed(1)
    x = tt.rand(2, 20, 50) + 1
    filled = T.SpecAugment(2, 20, 2, 10)(x)
    changed = filled[filled != x]
    assert changed.numel() > 0
    assert tt.allclose(changed, x.mean(), atol=0.1)
    assert float(T.SpecAugment(2, 20, 2, 10, iid_masks=False, zero_masking=True)(x[0]).min()) in (0.0, float(x[0].min()))


@pytest.mark.parametrize(("dtype", "bits"), [(tt.float32, None), (tt.float32, 32), (tt.int16, None), (tt.int32, None)])
def test_what_is_saved_as_wav_is_loaded(dtype: Any, bits: int | None) -> None:
    x = tt.tensor([[0.0, 0.5, -1.0, 0.25], [1.0, -0.125, 0.0, 0.75]])
    given = x if dtype is tt.float32 else (x.double() * (2.0 ** (15 if dtype is tt.int16 else 31) - 1)).to(dtype)
    file = io.BytesIO()
    save(file, given, 8000, bits_per_sample=bits)
    with wave.open(io.BytesIO(file.getvalue())) as f:
        assert (f.getnchannels(), f.getnframes(), f.getframerate()) == (2, 4, 8000)
    loaded, rate = load(io.BytesIO(file.getvalue()))
    assert (rate, loaded.dtype) == (8000, tt.float32)
    assert tt.allclose(loaded, x, atol=1e-4)
    part, _ = load(io.BytesIO(file.getvalue()), frame_offset=1, num_frames=2, channels_first=False)
    assert tt.equal(part, loaded[:, 1:3].t())
    if dtype is not tt.float32:
        assert tt.equal(load(io.BytesIO(file.getvalue()), normalize=False)[0], given)


@pytest.mark.parametrize(("width", "data", "wanted"), [(1, b"\x00\x80\xff", [-1.0, 0.0, 127 / 128]), (3, b"\0\0\x80\0\0\x40", [-1.0, 0.5])])
def test_files_of_8_and_24_bits_are_read(width: int, data: bytes, wanted: list[float]) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as f:
        f.setnchannels(1), f.setsampwidth(width), f.setframerate(16000)
        f.writeframes(data)
    file.seek(0)
    assert load(file, normalize=False)[0].tolist() == [wanted]


def test_layers_keep_what_torchaudios_keep() -> None:
    kept = {name: sorted(layer.state_dict()) for name, layer in {
        "mfcc": T.MFCC(n_mfcc=4, melkwargs={"n_mels": 8, "n_fft": 200}), "lfcc": T.LFCC(n_filter=8, n_lfcc=4), "mel": T.MelSpectrogram(n_mels=8, n_fft=200),
        "resample": T.Resample(3, 2), "same": T.Resample(3, 3), "stretch": T.TimeStretch(n_freq=5), "inverse": T.InverseMelScale(101, 8),
    }.items()}  # fmt: skip
    assert kept == {
        "mfcc": ["MelSpectrogram.mel_scale.fb", "MelSpectrogram.spectrogram.window", "dct_mat"], "lfcc": ["Spectrogram.window", "dct_mat", "filter_mat"],
        "mel": ["mel_scale.fb", "spectrogram.window"], "resample": ["kernel"], "same": [], "stretch": ["phase_advance"], "inverse": ["fb"],
    }  # fmt: skip
    mel = T.MelSpectrogram(16000, 512, n_mels=16)
    assert (mel.win_length, mel.hop_length, mel.spectrogram.n_fft) == (512, 256, 512)


X = tt.zeros(2, 40)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: F.lfilter(X, tt.ones(3), tt.ones(2)), ValueError, r"a_coeffs \(3,\) and b_coeffs \(2,\)"),
        (lambda: F.lfilter(X, tt.ones(3, 2), tt.ones(3, 2)), ValueError, r"3 filters for a waveform \(2, 40\)"),
        (lambda: F.lfilter(X, tt.ones(1, 3, 2), tt.ones(1, 3, 2)), ValueError, r"give \(order \+ 1\) or"),
        (lambda: F.lfilter(X, tt.ones(200), tt.ones(200)), RuntimeError, "at most 128"),
        (lambda: F.resample(X, 3, 0), ValueError, "whole rates above 0"),
        (lambda: F.resample(X, 5512.5, 1), ValueError, "whole rates above 0"),
        (lambda: F.resample(X.long(), 3, 2), RuntimeError, "resample: the waveform is int64"),
        (lambda: F.resample(X, 3, 2, resampling_method="nearest"), ValueError, "'nearest'; give \"sinc_interp_hann\""),
        (lambda: F.resample(X, 3, 2, lowpass_filter_width=0), ValueError, "give 1 or more"),
        (lambda: T.Spectrogram(16, normalized="both")(X), ValueError, 'give a bool, "window" or "frame_length"'),
        (lambda: T.Spectrogram(16, normalized=1)(X), TypeError, "normalized is a int"),
        (lambda: T.InverseSpectrogram(16)(X), ValueError, "the spectrogram is float32; give complex"),
        (lambda: T.GriffinLim(momentum=1.0), ValueError, "momentum is 1.0"),
        (lambda: T.TimeStretch()(X), ValueError, "no rate; give fixed_rate="),
        (lambda: T.MelScale(f_min=9000.0), ValueError, "f_min 9000.0 is above f_max 8000.0"),
        (lambda: T.MFCC(n_mfcc=20, melkwargs={"n_mels": 8}), ValueError, "20 coefficients of 8 mel filters"),
        (lambda: T.LFCC(dct_type=3), ValueError, "dct_type is 3"),
        (lambda: T.AmplitudeToDB(top_db=-1.0), ValueError, "top_db is -1.0"),
        (lambda: F.melscale_fbanks(9, 0.0, 1.0, 2, 2, mel_scale="bark"), ValueError, "mel_scale is 'bark'"),
        (lambda: F.create_dct(2, 3, "all"), ValueError, "norm is 'all'"),
        (lambda: F.compute_deltas(X, 2), ValueError, "win_length is 2; give 3"),
        (lambda: F.mask_along_axis_iid(X, 3, 0.0, 1), ValueError, "give 3 dimensions or more"),
        (lambda: F.mask_along_axis(X, 3, 0.0, 3), ValueError, "axis is 3; give 0 for frequencies or 1 for time"),
        (lambda: T.TimeMasking(3, p=2.0), ValueError, "p is 2.0; give a share"),
        (lambda: F.convolve(X, tt.zeros(3, 5)), ValueError, r"x \(2, 40\) and y \(3, 5\)"),
        (lambda: T.FFTConvolve("most"), ValueError, "FFTConvolve: mode is 'most'"),
        (lambda: F.add_noise(X, X, tt.zeros(1, 2)), ValueError, r"give \(\.\.\., time\)"),
        (lambda: F.loudness(tt.zeros(6, 40), 8000), ValueError, "6 channels"),
        (lambda: F.deemph_biquad(X, 16000), ValueError, "44100"),
        (lambda: F.riaa_biquad(X, 16000), ValueError, "44100, 48000, 88200, 96000"),
        (lambda: F.contrast(X, 101), ValueError, "give 0 to 100"),
        (lambda: T.Vol(-1.0), ValueError, "gain is -1.0"),
        (lambda: T.Fade(fade_shape="round"), ValueError, "fade_shape is 'round'"),
        (lambda: F.frechet_distance(X, X, X, X), ValueError, r"give \(n\), \(n, n\)"),
        (lambda: load(io.BytesIO(b"no sound")), ValueError, "no WAV file"),
        (lambda: load("x.mp3", format="mp3"), ValueError, "WAV files alone"),
        (lambda: save(io.BytesIO(), X, 8000, bits_per_sample=24), ValueError, "16 or 32 bits"),
        (lambda: save(io.BytesIO(), X[0], 8000), RuntimeError, r"of shape \(40,\)"),
        (lambda: save(io.BytesIO(), X.bool(), 8000), RuntimeError, "give floats"),
        (lambda: F.vad, AttributeError, "torchaudio has it, tritensor does not: an effect that runs sample by sample"),
        (lambda: T.MVDR, AttributeError, "several microphones"),
        (lambda: F.nothing, AttributeError, r"dir\(tritensor.audio.functional\)"),
        (lambda: tt.audio.datasets, AttributeError, "it has functional, transforms, load and save"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_warnings_say_what_is_odd() -> None:
    with pytest.warns(UserWarning, match="some of the 100 filters hold none"):
        F.melscale_fbanks(20, 0.0, 4000.0, 100, 8000)
    with pytest.warns(UserWarning, match="x is int64, and taken as float32"):
        F.mu_law_encoding(tt.tensor([1]), 8)
    with pytest.warns(UserWarning, match="is not complex"):
        T.TimeStretch(n_freq=3, fixed_rate=1.0)(tt.zeros(3, 4))
    with pytest.warns(UserWarning, match="is called 'sinc_interp_hann' by now"):
        F.resample(X, 3, 2, resampling_method="sinc_interpolation")


def test_torchaudio_is_answered() -> None:
    with run_script.opened():
        torchaudio = importlib.import_module("torchaudio")
        assert torchaudio.__version__.startswith("2.11.0+tritensor")
        assert importlib.import_module("torchaudio.transforms").MelSpectrogram is T.MelSpectrogram
        assert torchaudio.functional.lfilter is F.lfilter
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'torchaudio.datasets'"):
            importlib.import_module("torchaudio.datasets")
