"""Speech recognition in small: convolution over time, a bidirectional LSTM, CTC loss, greedy decoding."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Recogniser(nn.Module):
    def __init__(self, features, labels):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(features, 16, 3, padding=1), nn.BatchNorm1d(16), nn.Hardtanh(0, 20, inplace=True), nn.MaxPool1d(2)
        )
        self.rnn = nn.LSTM(16, 16, bidirectional=True)
        self.fc = nn.Linear(32, labels)

    def forward(self, x):
        x = self.conv(x).permute(2, 0, 1)
        x, _ = self.rnn(x)
        return F.log_softmax(self.fc(x), dim=2)


rng = np.random.default_rng(0)
codes = rng.standard_normal((5, 8))
targets = rng.integers(1, 5, (12, 4))
frames = np.repeat(codes[targets], 6, axis=1) + 0.1 * rng.standard_normal((12, 24, 8))
x = torch.tensor(frames, dtype=torch.float32).transpose(1, 2)
labels = torch.tensor(targets)
lengths = torch.tensor([4, 4, 4, 3, 3, 4, 4, 2, 4, 4, 4, 4])
model = fill(Recogniser(8, 5))
nn.init.ones_(model.conv[1].weight)
nn.init.zeros_(model.conv[1].bias)
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(14):
    out = model(x)
    loss = ctc(out, labels, torch.full((12,), out.size(0), dtype=torch.long), lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 4 == 0:
        print(f"{epoch} {loss.item():.3f}")
flat = torch.cat([row[:n] for row, n in zip(labels, lengths)])
again = F.ctc_loss(model(x), flat, (12,) * 12, tuple(lengths.tolist()), reduction="sum")
print(f"{again.item():.2f}")
model.eval()
with torch.no_grad():
    best = model(x).argmax(2).t()
decoded = [[k for k in torch.unique_consecutive(row).tolist() if k != 0] for row in best]
print(all(isinstance(d, list) for d in decoded), len(decoded))
