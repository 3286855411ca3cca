"""SqueezeNet (Iandola et al. 2016), with the parameter names that its published weights have."""

from __future__ import annotations

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class Fire(nn.Module):
    """Few channels by a 1 x 1 convolution, and many of them by one of 1 x 1 and one of 3 x 3 side by side."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze, self.squeeze_activation = nn.Conv2d(inplanes, squeeze_planes, 1), nn.ReLU(inplace=True)
        self.expand1x1, self.expand1x1_activation = nn.Conv2d(squeeze_planes, expand1x1_planes, 1), nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        wide = self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))
        return ops.cat(*wide, dim=1)  # type: ignore[no-any-return]


# Numbers are those of a Fire: (channels in, squeezed, each of the two expanded); "M" halves the image.
_PLANS: dict[str, tuple[int, int, tuple[tuple[int, int, int] | str, ...]]] = {
    "1_0": (96, 7, (
        "M", (96, 16, 64), (128, 16, 64), (128, 32, 128), "M", (256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256), "M", (512, 64, 256))),
    "1_1": (64, 3, (
        "M", (64, 16, 64), (128, 16, 64), "M", (128, 32, 128), (256, 32, 128), "M", (256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256))),
}  # fmt: skip


class SqueezeNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes); `version` "1_0" or "1_1". Raises ValueError for another."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _PLANS:
            raise ArgumentError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        first, kernel, plan = _PLANS[version]
        layers: list[nn.Module] = [nn.Conv2d(3, first, kernel, stride=2), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(3, 2, ceil_mode=True) if isinstance(p, str) else Fire(p[0], p[1], p[2], p[2]) for p in plan]
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is last:
                    init.normal_(module.weight, mean=0.0, std=0.01)
                else:
                    init.kaiming_uniform_(module.weight)
                assert module.bias is not None
                init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x)).flatten(1)  # type: ignore[no-any-return]
