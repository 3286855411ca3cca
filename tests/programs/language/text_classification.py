"""Bags of words of different lengths through nn.EmbeddingBag, with a collate function, a step schedule and a random split."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataset import random_split


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class News(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.items = []
        for i in range(64):
            label = i % 4
            words = rng.integers(0, 40, rng.integers(3, 9))
            words[::2] = label * 10 + words[::2] % 10
            self.items.append((label, words.tolist()))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, words in batch:
        labels.append(label)
        texts.append(torch.tensor(words, dtype=torch.int64))
        offsets.append(texts[-1].size(0))
    return torch.tensor(labels), torch.cat(texts), torch.tensor(offsets[:-1]).cumsum(dim=0)


class TextClassificationModel(nn.Module):
    def __init__(self, vocab, width, classes):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab, width, sparse=False)
        self.fc = nn.Linear(width, classes)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


data = News()
train, valid = random_split(data, [56, 8])
loader = DataLoader(data, batch_size=16, shuffle=False, collate_fn=collate_batch)
model = fill(TextClassificationModel(40, 16, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
for epoch in range(4):
    right, total = 0, 0
    for label, text, offsets in loader:
        optimizer.zero_grad()
        predicted = model(text, offsets)
        loss = criterion(predicted, label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        right += (predicted.argmax(1) == label).sum().item()
        total += label.size(0)
    scheduler.step()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right / total:.2f} lr {scheduler.get_last_lr()[0]}")
print(len(train), len(valid), model)
for mode in ("sum", "max"):
    bag = fill(nn.EmbeddingBag(40, 3, mode=mode))
    print(mode, [round(v, 3) for v in bag(torch.tensor([[1, 2], [3, 3]])).flatten().tolist()])
