"""Logistic regression with DataLoader: a collate function, a scheduler on the loss, accuracy, confusion counts."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(8)
X = np.vstack([rng.normal(-1, 1, (150, 4)), rng.normal(1, 1, (150, 4))]).astype("float32")
y = np.repeat([0, 1], 150).astype("float32")
mix = rng.permutation(300)
X, y = X[mix], y[mix]
mean, std = torch.as_tensor(X).mean(0), torch.as_tensor(X).std(0)
dataset = TensorDataset((torch.as_tensor(X) - mean) / std, torch.as_tensor(y))


def collate(samples):
    xs, ys = zip(*samples)
    return torch.stack(xs), torch.stack(ys)


class LogisticRegression(torch.nn.Module):
    def __init__(self, n_inputs):
        super().__init__()
        self.linear = torch.nn.Linear(n_inputs, 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(x).squeeze(-1)


model = LogisticRegression(4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, nesterov=True, momentum=0.5)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
for epoch in range(4):
    total = 0.0
    for xb, yb in DataLoader(dataset, batch_size=40, collate_fn=collate):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    scheduler.step(total / len(dataset))
    print(f"epoch {epoch} loss {total / len(dataset):.4f} lr {optimizer.param_groups[0]['lr']}")
with torch.no_grad():
    xs, ys = dataset[:]
    predicted = (torch.sigmoid(model(xs)) > 0.5).float()
    print("accuracy", (predicted == ys).float().mean().item())
    confusion = torch.zeros(2, 2, dtype=torch.int64)
    for t, p in zip(ys.long().tolist(), predicted.long().tolist()):
        confusion[t, p] += 1
    print(confusion)
