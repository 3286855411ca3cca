"""AlexNet in its one-column form (Krizhevsky 2014, "One weird trick"), with the parameter names that its published weights have."""

from __future__ import annotations

from tritensor import nn
from tritensor.tensor.core import Tensor


class AlexNet(nn.Module):
    """Images (n, 3, h, w), h and w at least 63, to scores (n, num_classes). 61,100,840 parameters for 1,000 classes."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:  # x: (n, 3, h, w)
        x = self.avgpool(self.features(x))  # (n, 256, 6, 6)
        return self.classifier(x.flatten(1))  # type: ignore[no-any-return]  # (n, num_classes)


def alexnet(num_classes: int = 1000, dropout: float = 0.5) -> AlexNet:
    """A new AlexNet: images (n, 3, h, w), best of 224 x 224, to scores (n, num_classes)."""
    return AlexNet(num_classes, dropout)
