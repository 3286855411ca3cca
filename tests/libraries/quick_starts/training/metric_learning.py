"""PyTorch Metric Learning: losses, miners and distances; embeddings trained; batches of so many of each class."""

import numpy as np
import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from pytorch_metric_learning.samplers import MPerClassSampler

torch.manual_seed(0)
rng = np.random.default_rng(0)
labels = torch.arange(24) % 4
points = torch.from_numpy(rng.standard_normal((24, 6)).astype(np.float32)) + labels[:, None]
model = torch.nn.Linear(6, 5)
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.standard_normal(p.shape).astype(np.float32)))
wanted = {
    "triplet": losses.TripletMarginLoss(margin=0.2, distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)),
    "contrastive": losses.ContrastiveLoss(), "ntxent": losses.NTXentLoss(0.5), "supcon": losses.SupConLoss(),
    "circle": losses.CircleLoss(), "multi": losses.MultiSimilarityLoss(embedding_regularizer=regularizers.LpRegularizer()),
}  # fmt: skip
for name, loss in wanted.items():
    model.zero_grad()
    value = loss(model(points), labels)
    value.backward()
    print(name, round(float(value), 4), round(float(model.weight.grad.norm()), 4))
miner = miners.MultiSimilarityMiner()
print("pairs", [len(i) for i in miner(model(points), labels)])
proxies = losses.ProxyAnchorLoss(4, 5)
proxies.proxies.data.copy_(torch.from_numpy(rng.standard_normal((4, 5)).astype(np.float32)))
optimizer = torch.optim.Adam([*model.parameters(), *proxies.parameters()], lr=0.05)
for _ in range(15):
    optimizer.zero_grad()
    value = proxies(model(points), labels)
    value.backward()
    optimizer.step()
print("trained", round(float(value), 3))
with torch.no_grad():
    similar = distances.CosineSimilarity()(model(points))
print("similar", tuple(similar.shape), round(float(similar.mean()), 3))
batch = list(MPerClassSampler(labels, m=2, batch_size=8, length_before_new_iter=8))
print("sampled", sorted(labels[batch].tolist()))
