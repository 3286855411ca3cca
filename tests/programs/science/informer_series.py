"""Informer: attention of the queries that matter, distilling convolutions, marks of time; mixed precision that is switched off."""

import math
from math import sqrt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim


class TriangularCausalMask:
    def __init__(self, B, L, device="cpu"):
        with torch.no_grad():
            self._mask = torch.triu(torch.ones([B, 1, L, L], dtype=torch.bool), diagonal=1).to(device)

    @property
    def mask(self):
        return self._mask


class ProbAttention(nn.Module):
    def __init__(self, factor=3, scale=None):
        super().__init__()
        self.factor, self.scale = factor, scale

    def _prob_QK(self, Q, K, sample_k, n_top):
        B, H, L_K, E = K.shape
        _, _, L_Q, _ = Q.shape
        K_expand = K.unsqueeze(-3).expand(B, H, L_Q, L_K, E)
        index_sample = torch.from_numpy(np.random.RandomState(L_K).randint(0, L_K, (L_Q, sample_k)))
        K_sample = K_expand[:, :, torch.arange(L_Q).unsqueeze(1), index_sample, :]
        QK = torch.matmul(Q.unsqueeze(-2), K_sample.transpose(-2, -1)).squeeze(-2)
        M = QK.max(-1)[0] - torch.div(QK.sum(-1), L_K)
        M_top = M.topk(n_top, sorted=False)[1].sort(-1)[0]
        Q_reduce = Q[torch.arange(B)[:, None, None], torch.arange(H)[None, :, None], M_top, :]
        return torch.matmul(Q_reduce, K.transpose(-2, -1)), M_top

    def forward(self, q, k, v):
        B, L_Q, H, D = q.shape
        q, k, v = q.transpose(2, 1), k.transpose(2, 1), v.transpose(2, 1)
        L_K = k.shape[2]
        U = min(self.factor * np.ceil(np.log(L_K)).astype("int").item(), L_K)
        u = min(self.factor * np.ceil(np.log(L_Q)).astype("int").item(), L_Q)
        scores, index = self._prob_QK(q, k, U, u)
        scores = scores * (self.scale or 1.0 / sqrt(D))
        context = v.mean(dim=-2).unsqueeze(-2).expand(B, H, L_Q, v.shape[-1]).clone()
        attn = torch.softmax(scores, dim=-1)
        context[torch.arange(B)[:, None, None], torch.arange(H)[None, :, None], index, :] = torch.matmul(attn, v).type_as(context)
        return context.transpose(2, 1).contiguous(), index


class ConvLayer(nn.Module):
    def __init__(self, c_in):
        super().__init__()
        self.downConv = nn.Conv1d(in_channels=c_in, out_channels=c_in, kernel_size=3, padding=1, padding_mode="circular")
        self.norm = nn.BatchNorm1d(c_in)
        self.activation = nn.ELU()
        self.maxPool = nn.MaxPool1d(kernel_size=3, stride=2, padding=1)

    def forward(self, x):
        return self.maxPool(self.activation(self.norm(self.downConv(x.permute(0, 2, 1))))).transpose(1, 2)


class PositionalEmbedding(nn.Module):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        pe = torch.zeros(max_len, d_model).float()
        pe.require_grad = False
        position = torch.arange(0, max_len).float().unsqueeze(1)
        div_term = (torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)).exp()
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.pe[:, : x.size(1)]


class Informer(nn.Module):
    def __init__(self, d=16, heads=2, pred=4):
        super().__init__()
        self.value = nn.Conv1d(1, d, 3, padding=1, padding_mode="circular", bias=False)
        self.pos, self.time = PositionalEmbedding(d), nn.Linear(2, d)
        nn.init.kaiming_normal_(self.value.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.attn = nn.ModuleList([ProbAttention() for _ in range(2)])
        self.qkv = nn.ModuleList([nn.Linear(d, 3 * d) for _ in range(2)])
        self.conv = nn.ModuleList([ConvLayer(d)])
        self.norm = nn.LayerNorm(d)
        self.projection = nn.Sequential(nn.Flatten(1), nn.LazyLinear(pred))
        self.h = heads

    def forward(self, x, mark):
        x = self.value(x.permute(0, 2, 1)).transpose(1, 2) + self.pos(x) + self.time(mark)
        for i, (a, w) in enumerate(zip(self.attn, self.qkv)):
            B, L, _ = x.shape
            q, k, v = w(x).view(B, L, 3, self.h, -1).unbind(2)
            out, self.last = a(q, k, v)
            x = self.norm(x + out.view(B, L, -1))
            if i < len(self.conv):
                x = self.conv[i](x)
        return self.projection(x).unsqueeze(-1)


rng = np.random.RandomState(0)
t = np.arange(300, dtype=np.float64)
y = np.sin(2 * np.pi * t / 24) + 0.3 * np.sin(2 * np.pi * t / 7) + 0.05 * rng.randn(300)
marks = np.stack([t % 24 / 23 - 0.5, t % 7 / 6 - 0.5], 1)
model = Informer().float()
scaler = torch.cuda.amp.GradScaler(enabled=False)
seq = [
    (torch.tensor(y[i : i + 20, None]), torch.tensor(marks[i : i + 20]), torch.tensor(y[i + 20 : i + 24, None])) for i in range(0, 270, 3)
]
b = lambda i: [torch.stack(z).float() for z in zip(*seq[i : i + 15])]
model(*b(0)[:2])
model.conv[0].norm.reset_running_stats()
for p in model.parameters():
    if p.dim() > 1:
        p.data = torch.from_numpy(rng.normal(0, p.shape[1] ** -0.5 / 2, p.shape)).to(p.dtype)
    elif p.numel() != 16:
        p.data.zero_()
model.time.bias.data.zero_()
model.conv[0].downConv.bias.data.zero_()
print(model, TriangularCausalMask(1, 3).mask.int())
opt = optim.Adam(model.parameters(), lr=5e-3)
adjust = {1: 2.5e-3, 2: 1e-3}
for epoch in range(3):
    if epoch in adjust:
        for param_group in opt.param_groups:
            param_group["lr"] = adjust[epoch]
        print("Updating learning rate to {}".format(adjust[epoch]))
    losses = []
    for i in range(0, 45, 15):
        x, m, target = b(i)
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=False):
            out = model(x, m)
            loss = nn.MSELoss()(out, target[:, -4:, :])
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        losses.append(loss.item())
    print(epoch, "%.4f" % np.average(losses), scaler.get_scale(), scaler.is_enabled())
model.eval()
with torch.no_grad():
    x, m, target = b(75)
    pred = model(x, m).detach().cpu().numpy()
    true = target.numpy()
mae, mse = np.mean(np.abs(pred - true)), np.mean((pred - true) ** 2)
print("mse:{:.4f}, mae:{:.4f}".format(mse, mae), pred.shape, model.last[0, 0].tolist(), model.last.shape)
