"""Sequence to sequence with additive attention and teacher forcing: reversing digits. GRU encoder, GRU cell decoder, padded batches."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Encoder(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width, padding_idx=0)
        self.gru = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.merge = nn.Linear(2 * width, width)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.gru(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.merge(out), torch.tanh(self.merge(torch.cat((h[0], h[1]), dim=-1)))


class BahdanauAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query).unsqueeze(1) + self.Ua(keys))).squeeze(2)
        weights = F.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights


class Decoder(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embedding, self.attention = nn.Embedding(vocab, width), BahdanauAttention(width)
        self.cell, self.out = nn.GRUCell(2 * width, width), nn.Linear(width, vocab)

    def forward(self, h, keys, mask, target=None, steps=6):
        token, found = torch.ones(keys.size(0), dtype=torch.long), []
        for i in range(steps):
            context, _ = self.attention(h, keys, mask)
            h = self.cell(torch.cat([self.embedding(token), context], dim=1), h)
            found.append(self.out(h))
            token = target[:, i] if target is not None else found[-1].argmax(1)
        return torch.stack(found, dim=1)


rng = np.random.default_rng(0)
words = [torch.tensor(rng.integers(2, 8, n)) for n in rng.integers(3, 7, 16)]
x = pad_sequence(words, batch_first=True)
y = pad_sequence([w.flip(0) for w in words], batch_first=True, padding_value=0)
lengths = torch.tensor([len(w) for w in words])
mask = torch.arange(x.size(1))[None, :] < lengths[:, None]
encoder, decoder = fill(Encoder(8, 24)), fill(Decoder(8, 24), 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=0)
for epoch in range(12):
    keys, h = encoder(x, lengths)
    logits = decoder(h, keys, mask, y, x.size(1))
    loss = criterion(logits.reshape(-1, 8), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 4 == 0:
        print(f"{epoch} {loss.item():.3f}")
with torch.no_grad():
    keys, h = encoder(x, lengths)
    print(
        tuple(decoder(h, keys, mask, steps=x.size(1)).shape),
        "pad row has no gradient:",
        encoder.embedding.weight.grad[0].abs().sum().item() == 0,
    )
