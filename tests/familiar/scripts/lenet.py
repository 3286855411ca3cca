"""A small convolutional network on images: Conv2d, pooling, a learning-rate schedule by lambda, accuracy by class."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

rng = np.random.RandomState(9)
classes = ("bar", "dash", "dot")
images = np.zeros((90, 1, 12, 12), dtype=np.float32)
labels = np.arange(90) % 3
for image, label in zip(images, labels):
    i, j = rng.randint(2, 9, 2)
    image[
        0,
        {0: slice(1, 11), 1: slice(i, i + 2), 2: slice(i, i + 2)}[label],
        {0: slice(j, j + 2), 1: slice(1, 11), 2: slice(j, j + 2)}[label],
    ] = 1.0
images += 0.1 * rng.randn(*images.shape).astype(np.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.fc1 = nn.Linear(6 * 2 * 2, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        return self.fc1(x.reshape(x.size(0), -1))


net = Net()
net.train()
for p in net.parameters():
    with torch.no_grad():
        p.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.3))
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
for epoch in range(5):
    running_loss = 0.0
    for at in range(0, 90, 15):
        optimizer.zero_grad()
        outputs = net(inputs[at : at + 15])
        loss = criterion(outputs, targets[at : at + 15])
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    schedule.step()
    print(f"[{epoch + 1}] loss: {running_loss / 6:.3f} lr: {optimizer.param_groups[0]['lr']:.5f}")
correct = {classname: 0 for classname in classes}
with torch.no_grad():
    _, predictions = torch.max(net(inputs), 1)
    for label, prediction in zip(targets, predictions):
        if label == prediction:
            correct[classes[label]] += 1
print(correct)
print(net)
