"""torchaudio's transforms and functional: features, resampling, filters, augmentation, and a classifier of tones trained on them."""

import numpy as np
import torch
import torchaudio.functional as F
import torchaudio.transforms as T
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
time = np.arange(4000) / 8000.0
tones = (
    np.stack([np.sin(2 * np.pi * f * time) + 0.1 * rng.standard_normal(4000) for f in (300, 320, 340, 900, 950, 1000)]).astype(np.float32)
    * 0.5
)
x = torch.tensor(tones)
for name, layer in {
    "spectrogram": T.Spectrogram(256), "mel": T.MelSpectrogram(8000, 256, n_mels=24), "mfcc": T.MFCC(8000, 12, melkwargs={"n_fft": 256, "n_mels": 24}),
    "lfcc": T.LFCC(8000, 24, n_lfcc=12, speckwargs={"n_fft": 256}), "resample": T.Resample(8000, 6000), "centroid": T.SpectralCentroid(8000, 256),
    "law": T.MuLawEncoding(), "fade": T.Fade(200, 400), "volume": T.Vol(6.0, "db"),
}.items():  # fmt: skip
    made = layer(x).float()
    print(name, tuple(made.shape), round(float(made.mean()), 4), round(float(made.abs().max()), 3))
spectrum = T.Spectrogram(256, power=None)(x)
print("inverse", bool(torch.allclose(T.InverseSpectrogram(256)(spectrum, 4000), x, atol=1e-4)))
print("stretched", tuple(T.TimeStretch(n_freq=129, fixed_rate=1.25)(spectrum).shape))
print("griffin-lim", tuple(T.GriffinLim(256, n_iter=4)(spectrum.abs().square()).shape))
for name in ("lowpass_biquad", "highpass_biquad", "bandreject_biquad"):
    print(name, [round(float(v), 4) for v in getattr(F, name)(x, 8000, 600.0).square().mean(-1)])
print("filter", round(float(F.lfilter(x, torch.tensor([1.0, -0.5]), torch.tensor([0.25, 0.25])).sum()), 3))
print(
    "decibels",
    round(float(F.amplitude_to_DB(spectrum.abs(), 20.0, 1e-5, 0.0, 60.0).mean()), 2),
    "pitch",
    round(float(F.detect_pitch_frequency(x, 8000).mean()), 1),
)
print("masked", bool((T.FrequencyMasking(20)(spectrum.abs() + 1) == 0).any(-1).any()), tuple(T.TimeMasking(9)(spectrum.abs()).shape))
print("distance", F.edit_distance("a quick start", "the quickest start"))

model = nn.Sequential(T.MelSpectrogram(8000, 256, n_mels=16), T.AmplitudeToDB(top_db=60.0), nn.Flatten(), nn.Linear(16 * 32, 2, bias=False))
nn.init.zeros_(model[3].weight)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
labels = torch.tensor([0, 0, 0, 1, 1, 1])
for step in range(5):
    loss = nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", step, round(float(loss), 4))
