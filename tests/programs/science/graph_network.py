"""A graph convolution and an attention layer by index_add, scatter_reduce and gather: two communities told apart."""

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


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index):
        n = x.size(0)
        row, col = torch.cat([edge_index, torch.arange(n).repeat(2, 1)], dim=1)
        degree = torch.zeros(n).scatter_add_(0, row, torch.ones(row.numel()))
        norm = degree.pow(-0.5)
        weight = norm[row] * norm[col]
        x = self.lin(x)
        return torch.zeros_like(x).index_add(0, row, weight.unsqueeze(1) * x[col]) + self.bias


class GATConv(nn.Module):
    def __init__(self, cin, cout, heads):
        super().__init__()
        self.lin, self.heads, self.cout = nn.Linear(cin, heads * cout, bias=False), heads, cout
        self.att = nn.Parameter(torch.empty(1, heads, 2 * cout))
        nn.init.xavier_uniform_(self.att)

    def forward(self, x, edge_index):
        row, col = edge_index
        h = self.lin(x).view(-1, self.heads, self.cout)
        score = F.leaky_relu((torch.cat([h[row], h[col]], dim=-1) * self.att).sum(-1), 0.2)
        index = row.unsqueeze(1).expand_as(score)
        top = torch.full((x.size(0), self.heads), float("-inf")).scatter_reduce(0, index, score, reduce="amax")
        score = (score - top[row]).exp()
        total = torch.zeros(x.size(0), self.heads).scatter_add(0, index, score)
        alpha = score / total[row].clamp(min=1e-16)
        return torch.zeros_like(h).index_add_(0, row, alpha.unsqueeze(-1) * h[col]).mean(dim=1)


rng = np.random.default_rng(0)
labels = np.arange(24) % 2
adjacency = rng.uniform(size=(24, 24)) < np.where(labels[:, None] == labels[None], 0.35, 0.05)
adjacency |= adjacency.T
np.fill_diagonal(adjacency, True)
edges = torch.tensor(adjacency).nonzero().t()
x = torch.tensor(rng.standard_normal((24, 6)), dtype=torch.float32)
y = torch.tensor(labels)
one, two = fill(GCNConv(6, 8)), fill(GATConv(8, 2, 2), 1)
optimizer = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=0.02, weight_decay=5e-4)
for epoch in range(30):
    optimizer.zero_grad()
    out = two(F.elu(one(x, edges)), edges)
    loss = F.cross_entropy(out[:16], y[:16])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(f"{epoch} {loss.item():.4f}")
print(edges.shape[1], f"train accuracy {(out.argmax(1) == y)[:16].float().mean().item():.2f}")
