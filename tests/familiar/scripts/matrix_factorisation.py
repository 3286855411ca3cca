"""Recommendations by matrix factorisation: embeddings for users and items with biases, weight decay, a custom loop."""

import numpy as np
import torch
from torch.autograd import Variable


class MatrixFactorization(torch.nn.Module):
    def __init__(self, n_users, n_items, n_factors=5):
        super().__init__()
        self.user_factors = torch.nn.Embedding(n_users, n_factors)
        self.item_factors = torch.nn.Embedding(n_items, n_factors)
        self.user_biases = torch.nn.Embedding(n_users, 1)
        self.item_biases = torch.nn.Embedding(n_items, 1)

    def forward(self, user, item):
        pred = self.user_biases(user) + self.item_biases(item)
        pred += (self.user_factors(user) * self.item_factors(item)).sum(dim=1, keepdim=True)
        return pred.squeeze()


rng = np.random.RandomState(4)
ratings = (rng.randn(12, 3) @ rng.randn(3, 15)).astype(np.float32)
rows, cols = ratings.nonzero()
model = MatrixFactorization(12, 15)
for name, p in sorted(model.named_parameters()):
    p.data.copy_(torch.Tensor(0.1 * rng.randn(*p.shape)))
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-5)
for epoch in range(5):
    order = rng.permutation(len(rows))
    total = 0.0
    for at in range(0, len(rows), 30):
        pick = order[at : at + 30]
        user, item = Variable(torch.from_numpy(rows[pick])), Variable(torch.from_numpy(cols[pick]))
        rating = Variable(torch.from_numpy(ratings[rows[pick], cols[pick]]))
        loss = loss_fn(model(user, item), rating)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch %d loss %.3f" % (epoch, total))
for name, parameter in model.named_parameters():
    print(name, parameter.size(), parameter.requires_grad)
