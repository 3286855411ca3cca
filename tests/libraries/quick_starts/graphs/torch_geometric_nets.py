"""torch_geometric: graphs, batches, message passing, networks over nodes and over whole graphs, transforms."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.transforms import Compose, Constant, NormalizeFeatures, OneHotDegree, ToUndirected
from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_adj, to_undirected

torch.manual_seed(0)
rng = np.random.default_rng(0)


def fill(module):
    """The same weights in either library."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(torch.tensor(np.random.default_rng(i).standard_normal(tuple(p.shape)).astype(np.float32) * 0.3))
    return module


def graph(nodes):
    edges = torch.tensor(rng.integers(0, nodes, (2, 3 * nodes)))
    x = torch.tensor(rng.standard_normal((nodes, 5)).astype(np.float32))
    return Data(x=x, edge_index=to_undirected(edges), y=torch.tensor([int(nodes > 6)]))


graphs = [graph(n) for n in (4, 9, 5, 8)]
data = graphs[1]
print(data.num_nodes, data.num_edges, data.is_undirected(), data.has_isolated_nodes())
print("degree", degree(data.edge_index[0], 9).tolist())
print("dense", tuple(to_dense_adj(data.edge_index).shape), float(to_dense_adj(data.edge_index).sum()))
print("loops", add_self_loops(data.edge_index)[0].shape[1])
for reduce in ("sum", "mean", "max"):
    print("scatter", reduce, round(float(scatter(data.x[data.edge_index[0]], data.edge_index[1], dim_size=9, reduce=reduce).sum()), 4))
print("softmax", round(float(softmax(data.x[data.edge_index[0], 0], data.edge_index[1]).max()), 4))
batch = Batch.from_data_list(graphs)
print("batch", batch.num_graphs, tuple(batch.x.shape), batch.batch.tolist()[-3:])
for name, pool in (("add", global_add_pool), ("mean", global_mean_pool), ("max", global_max_pool)):
    print("pool", name, [round(float(v), 4) for v in pool(batch.x, batch.batch)[:, 0]])
for layer in (GCNConv(5, 4), GATConv(5, 4, heads=2), SAGEConv(5, 4), GINConv(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4)))):
    out = fill(layer)(data.x, data.edge_index)
    print(type(layer).__name__, tuple(out.shape), round(float(out.sum()), 4))


class Mean(MessagePassing):
    def __init__(self):
        super().__init__(aggr="mean")
        self.linear = nn.Linear(5, 5)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=self.linear(x))

    def message(self, x_j, x_i):
        return x_j - x_i


print("own layer", round(float(fill(Mean())(data.x, data.edge_index).abs().sum()), 4))
changed = Compose([ToUndirected(), Constant(), NormalizeFeatures(), OneHotDegree(20)])(data.clone())
print("transformed", tuple(changed.x.shape), round(float(changed.x.sum()), 4))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = GCNConv(5, 8), SAGEConv(8, 8), nn.Linear(8, 2)

    def forward(self, data):
        x = F.relu(self.first(data.x, data.edge_index))
        return self.head(global_mean_pool(F.relu(self.second(x, data.edge_index)), data.batch))


model = fill(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(5):
    for part in DataLoader(graphs, batch_size=2):
        loss = F.cross_entropy(model(part), part.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", epoch, round(float(loss), 4))
