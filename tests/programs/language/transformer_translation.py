"""nn.Transformer with padding and causal masks copies and shifts a sequence; positional encoding, label smoothing, Noam's schedule."""

import math

import numpy as np
import torch
import torch.nn as nn


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class PositionalEncoding(nn.Module):
    def __init__(self, width, longest=50):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        div = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        pe = torch.zeros(1, longest, width)
        pe[0, :, 0::2] = torch.sin(position * div)
        pe[0, :, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self, vocab, width=32):
        super().__init__()
        self.embed, self.position = nn.Embedding(vocab, width), PositionalEncoding(width)
        self.transformer = nn.Transformer(width, 4, 1, 2, 64, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(width, vocab)

    def forward(self, src, tgt):
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        pad_src, pad_tgt = src == 0, torch.zeros_like(tgt, dtype=torch.float).masked_fill(tgt == 0, float("-inf"))
        out = self.transformer(
            self.position(self.embed(src)),
            self.position(self.embed(tgt)),
            tgt_mask=causal,
            src_key_padding_mask=pad_src,
            tgt_key_padding_mask=pad_tgt,
            memory_key_padding_mask=pad_src,
        )
        return self.generator(out)


model = fill(Seq2Seq(10))
for m in model.modules():
    if isinstance(m, nn.LayerNorm):
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)
rng = np.random.default_rng(0)
src = torch.tensor(rng.integers(2, 10, (16, 6)))
src[:4, 4:] = 0
tgt = torch.cat([torch.ones(16, 1, dtype=torch.long), src], dim=1)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
noam = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 32**-0.5 * min((s + 1) ** -0.5, (s + 1) * 20**-1.5))
criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
model.train()
for step in range(16):
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.reshape(-1, 10), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    noam.step()
    if step % 5 == 0:
        print(f"{step} {loss.item():.3f} {noam.get_last_lr()[0]:.5f}")
model.eval()
with torch.no_grad():
    ys = torch.ones(2, 1, dtype=torch.long)
    for _ in range(6):
        ys = torch.cat([ys, model(src[:2], ys)[:, -1].argmax(1, keepdim=True)], dim=1)
print(tuple(ys.shape), len(model.transformer.state_dict()))
