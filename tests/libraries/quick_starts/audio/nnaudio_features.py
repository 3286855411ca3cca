"""nnAudio: spectrograms as layers: STFT and its inverse, mel, MFCC, constant Q, gammatone, trained and fixed."""

import numpy as np
import torch
from nnAudio import features
from torch import nn

torch.manual_seed(0)
time = np.arange(8000) / 8000.0
sound = np.sin(2 * np.pi * 440 * time) + 0.5 * np.sin(2 * np.pi * 1000 * time * (1 + 0.2 * time))
x = torch.tensor(sound.astype(np.float32))[None]
for name, layer in {
    "stft": features.STFT(n_fft=256, hop_length=128, output_format="Magnitude", sr=8000, verbose=False),
    "mel": features.MelSpectrogram(sr=8000, n_fft=256, n_mels=20, hop_length=128, verbose=False),
    "mfcc": features.MFCC(sr=8000, n_mfcc=10, n_fft=256, n_mels=20, hop_length=128, verbose=False),
    "cqt": features.CQT1992v2(sr=8000, hop_length=256, fmin=110, n_bins=36, verbose=False),
    "cqt2010": features.CQT2010v2(sr=8000, hop_length=256, fmin=110, n_bins=36, verbose=False),
    "vqt": features.VQT(sr=8000, hop_length=256, fmin=110, n_bins=24, verbose=False),
    "gammatone": features.Gammatonegram(sr=8000, n_fft=256, n_bins=16, hop_length=128, fmin=50, verbose=False),
}.items():
    made = layer(x)
    print(name, tuple(made.shape), round(float(made.abs().mean()), 4), round(float(made.abs().max()), 3))
stft = features.STFT(n_fft=256, hop_length=64, output_format="Complex", iSTFT=True, sr=8000, verbose=False)
back = stft.inverse(stft(x), length=8000)
print("inverse", round(float((back - x)[:, 200:-200].abs().max()), 3))

model = nn.Sequential(
    features.MelSpectrogram(sr=8000, n_fft=256, n_mels=8, hop_length=256, trainable_mel=True, trainable_STFT=True, verbose=False),
    nn.Flatten(),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
target = model(x).detach() * 0.5
losses = []
for _ in range(5):
    loss = (model(x) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss falls", losses[-1] < losses[0], "parameters", [tuple(p.shape) for p in model.parameters()])
