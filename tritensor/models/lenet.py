"""LeNet-5 (LeCun et al. 1998), as today's tutorials write it: ReLU and max pooling."""

from __future__ import annotations

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.tensor.core import Tensor


class LeNet(nn.Module):
    """Images (n, channels, 32, 32) to scores (n, num_classes). 61,706 parameters for one channel and ten classes."""

    def __init__(self, num_classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:  # x: (n, channels, 32, 32)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)  # (n, 6, 14, 14)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # (n, 16, 5, 5)
        x = x.flatten(1)  # (n, 400)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)  # type: ignore[no-any-return]  # (n, num_classes)


def lenet(num_classes: int = 10, channels: int = 1) -> LeNet:
    """A new LeNet: images (n, channels, 32, 32) to scores (n, num_classes)."""
    return LeNet(num_classes, channels)
