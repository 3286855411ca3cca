"""A word language model: embedding, two LSTM layers, hidden state carried over and detached, clipping, perplexity."""

import math

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


class RNNModel(nn.Module):
    def __init__(self, kind, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, kind)(ninp, nhid, nlayers, dropout=0.0)
        self.decoder = nn.Linear(nhid, ntoken)
        self.kind, self.nhid, self.nlayers, self.ntoken = kind, nhid, nlayers, ntoken

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return F.log_softmax(self.decoder(self.drop(output)).view(-1, self.ntoken), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        zeros = weight.new_zeros(self.nlayers, bsz, self.nhid)
        return (zeros, zeros.clone()) if self.kind == "LSTM" else zeros


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


rng = np.random.default_rng(0)
corpus = torch.tensor(np.cumsum(rng.integers(1, 3, 400)) % 12)
data = batchify(corpus, 4)
for kind in ("LSTM", "GRU"):
    model = fill(RNNModel(kind, 12, 16, 24, 2))
    criterion, hidden, lr = nn.NLLLoss(), model.init_hidden(4), 2.0
    model.train()
    for epoch in range(2):
        total = 0.0
        for i in range(0, data.size(0) - 1, 10):
            n = min(10, len(data) - 1 - i)
            x, y = data[i : i + n], data[i + 1 : i + 1 + n].reshape(-1)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(x, hidden)
            loss = criterion(output, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total += loss.item() * n
        print(f"{kind} epoch {epoch} loss {total / (len(data) - 1):.3f} ppl {math.exp(total / (len(data) - 1)):.2f}")
    print([n for n, _ in model.rnn.named_parameters()][:4], model.rnn)
