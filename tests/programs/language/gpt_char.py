"""A GPT of a few lines: causal self-attention with a buffer of the mask, weight tying, decay groups, greedy and top-k generation."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.c_attn, self.c_proj, self.n_head = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x, fast):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        if fast:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width, bias=False)
        self.attn = CausalSelfAttention(width, heads, block)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(width, 4 * width), act=nn.GELU("tanh"), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x, fast):
        x = x + self.attn(self.ln_1(x), fast)
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab, width=32, heads=4, layers=2, block=24):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab, width),
                wpe=nn.Embedding(block, width),
                drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(width, heads, block) for _ in range(layers)]),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None, fast=True):
        pos = torch.arange(0, idx.size(1), dtype=torch.long).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x, fast)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


text = "the cat sat on the mat and the dog sat on the log. " * 8
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
model = fill(GPT(len(chars)))
for m in model.modules():
    if isinstance(m, nn.LayerNorm):
        nn.init.ones_(m.weight)
        if m.bias is not None:
            nn.init.zeros_(m.bias)
decay = [p for p in model.parameters() if p.dim() >= 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}], lr=3e-3
)
rng = np.random.default_rng(0)
for step in range(20):
    ix = rng.integers(0, len(data) - 25, 8)
    x = torch.stack([data[i : i + 24] for i in ix])
    y = torch.stack([data[i + 1 : i + 25] for i in ix])
    _, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 5 == 0:
        print(f"iter {step}: loss {loss.item():.3f}")
same = torch.allclose(model(x)[0], model(x, fast=False)[0], atol=1e-4)
out = data[:4].unsqueeze(0)
for _ in range(12):
    logits, _ = model(out[:, -24:])
    logits = logits[:, -1]
    v, _ = torch.topk(logits, 3)
    logits[logits < v[:, [-1]]] = -float("inf")
    out = torch.cat((out, torch.argmax(F.softmax(logits, dim=-1), dim=-1, keepdim=True)), dim=1)
print(same, len(out[0]), sum(p.numel() for p in model.parameters()))
