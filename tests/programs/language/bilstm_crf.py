"""A BiLSTM with a conditional random field on top: forward algorithm, Viterbi, tags of a toy sentence."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def log_sum_exp(vec):
    m = vec.max()
    return m + torch.log(torch.sum(torch.exp(vec - m)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab, tags, width):
        super().__init__()
        self.tags = tags
        self.word_embeds = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width // 2, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(width, len(tags))
        self.transitions = nn.Parameter(torch.zeros(len(tags), len(tags)))

    def close(self):
        self.transitions.data[self.tags["<START>"], :] = -10000
        self.transitions.data[:, self.tags["<STOP>"]] = -10000

    def features(self, sentence):
        out, _ = self.lstm(self.word_embeds(sentence).view(len(sentence), 1, -1))
        return self.hidden2tag(out.view(len(sentence), -1))

    def forward_alg(self, feats):
        alphas = torch.full((1, len(self.tags)), -10000.0)
        alphas[0][self.tags["<START>"]] = 0.0
        for feat in feats:
            row = []
            for next_tag in range(len(self.tags)):
                row.append(log_sum_exp(alphas + self.transitions[next_tag].view(1, -1) + feat[next_tag].view(1, -1)).view(1))
            alphas = torch.cat(row).view(1, -1)
        return log_sum_exp(alphas + self.transitions[self.tags["<STOP>"]])

    def score(self, feats, tags):
        total = torch.zeros(1)
        tags = torch.cat([torch.tensor([self.tags["<START>"]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            total = total + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return total + self.transitions[self.tags["<STOP>"], tags[-1]]

    def loss(self, sentence, tags):
        feats = self.features(sentence)
        return self.forward_alg(feats) - self.score(feats, tags)

    def viterbi(self, sentence):
        scores, back = torch.full((len(self.tags),), -10000.0), []
        scores[self.tags["<START>"]] = 0
        for feat in self.features(sentence):
            best, where = (scores[None, :] + self.transitions).max(dim=1)
            scores = best + feat
            back.append(where)
        path = [int(torch.argmax(scores + self.transitions[self.tags["<STOP>"]]))]
        for where in reversed(back):
            path.append(int(where[path[-1]]))
        return path[:-1][::-1]


sentences = [("the wall street journal reported today", "B I I I O O"), ("georgia tech is a university", "B I O O B")]
words = {w: i for i, w in enumerate(dict.fromkeys(" ".join(s for s, _ in sentences).split()))}
tags = {"B": 0, "I": 1, "O": 2, "<START>": 3, "<STOP>": 4}
model = fill(BiLSTM_CRF(len(words), tags, 6))
model.close()
optimizer = optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
encode = lambda s, m: torch.tensor([m[w] for w in s.split()], dtype=torch.long)
for epoch in range(12):
    total = 0.0
    for s, t in sentences:
        model.zero_grad()
        loss = model.loss(encode(s, words), encode(t, tags))
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"{epoch} {total:.3f}")
with torch.no_grad():
    print(model.viterbi(encode(sentences[0][0], words)))
