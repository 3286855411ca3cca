"""word2vec's skip-gram with negative sampling, on a short text."""

from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

text = """we are about to study the idea of a computational process computational processes are abstract beings that inhabit computers
as they evolve processes manipulate other abstract things called data the evolution of a process is directed by a pattern of rules
called a program people create programs to direct processes in effect we conjure the spirits of the computer with our spells""".split()
vocabulary = sorted(set(text))
word_to_ix = {word: i for i, word in enumerate(vocabulary)}
rng = np.random.RandomState(6)


class Pairs(Dataset):
    def __init__(self, words, window=2, negatives=4):
        self.pairs = [
            (word_to_ix[w], word_to_ix[words[j]])
            for i, w in enumerate(words)
            for j in range(max(0, i - window), min(len(words), i + window + 1))
            if i != j
        ]
        counts = Counter(words)
        p = np.array([counts[w] for w in vocabulary]) ** 0.75
        self.negatives = rng.choice(len(vocabulary), (len(self.pairs), negatives), p=p / p.sum())

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        centre, context = self.pairs[i]
        return torch.tensor(centre), torch.tensor(context), torch.tensor(self.negatives[i]).long()


class SkipGram(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.centre = nn.Embedding(size, dim)
        self.context = nn.Embedding(size, dim)

    def forward(self, centre, context, negatives):
        v = self.centre(centre)
        positive = (v * self.context(context)).sum(-1)
        negative = torch.bmm(self.context(negatives), v.unsqueeze(2)).squeeze(2)
        return -(-F.softplus(-positive) - F.softplus(negative).sum(1)).mean()


model = SkipGram(len(vocabulary), 10)
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(rng.uniform(-0.5, 0.5, p.shape), dtype=torch.float32))
loader = DataLoader(Pairs(text), batch_size=32, shuffle=False, drop_last=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(4):
    losses = []
    for batch in loader:
        loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, len(losses), f"{sum(losses) / len(losses):.3f}")
w = model.centre.weight.detach()
w = w / w.norm(dim=1, keepdim=True)
print((w @ w.t()).shape, f"{torch.diag(w @ w.T).sum().item():.2f}")
