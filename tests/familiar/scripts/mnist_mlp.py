"""The MNIST example's shape: argparse, train and test functions, DataLoader, StepLR, a checkpoint; on drawn digits."""

import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(64, 32)
        self.dropout = nn.Dropout(0.0)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout(x)
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = batch_idx * len(data)
            print(
                f"Train Epoch: {epoch} [{done}/{len(train_loader.dataset)} ({100.0 * batch_idx / len(train_loader):.0f}%)]\tLoss: {loss.item():.4f}"
            )


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    print(f"\nTest set: Average loss: {test_loss / len(test_loader.dataset):.4f}, Accuracy: {correct}/{len(test_loader.dataset)}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-cuda", action="store_true", default=True)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args([])
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda" if use_cuda else "cpu")
    rng = np.random.RandomState(0)
    centres = rng.randn(10, 1, 8, 8)
    labels = rng.randint(0, 10, 300)
    images = centres[labels] + 0.3 * rng.randn(300, 1, 8, 8)
    x, y = torch.tensor(images, dtype=torch.float32), torch.from_numpy(labels).long()
    train_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:200], y[:200]), batch_size=args.batch_size, shuffle=False)
    test_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[200:], y[200:]), batch_size=64)
    model = Net().to(device)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.1 * rng.randn(*p.shape)))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
    print([round(lr, 6) for lr in scheduler.get_last_lr()])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mnist_mlp.pt")
        torch.save(model.state_dict(), path)
        again = Net()
        print(again.load_state_dict(torch.load(path)))
    again.eval()
    print(torch.equal(again(x[:5]), model(x[:5])))


if __name__ == "__main__":
    main()
