"""VGG (Simonyan and Zisserman 2015), with and without batch normalization, with the parameter names that its published weights have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritensor import nn
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

# The channels of each convolution; "M" halves the image. Keyed by the number of layers that have weights.
PLANS: dict[int, tuple[int | str, ...]] = {
    11: (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"),
    13: (64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"),
    16: (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"),
    19: (64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M", 512, 512, 512, 512, "M"),
}


class VGG(nn.Module):
    """Images (n, 3, h, w), h and w at least 32, to scores (n, num_classes). With 16 layers 138,357,544 parameters for 1,000 classes.

    `layers` is a number of layers, 11, 13, 16 or 19, or a module of one's own that makes 512 channels of images. `init_weights=False` leaves the layers'
    own first values.
    """

    def __init__(
        self,
        layers: int | nn.Module = 16,
        num_classes: int = 1000,
        batch_norm: bool = False,
        dropout: float = 0.5,
        init_weights: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(layers, nn.Module) and layers not in PLANS:
            raise ValueError(f"VGG: there is no VGG of {layers} layers; give one of {', '.join(map(str, PLANS))}")
        self.features = layers if isinstance(layers, nn.Module) else nn.Sequential(*make_features(PLANS[layers], batch_norm))
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )  # fmt: skip
        if init_weights:
            self._init_weights()

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                init.normal_(module.weight, 0, 0.01)
                init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:  # x: (n, 3, h, w)
        x = self.avgpool(self.features(x))  # (n, 512, 7, 7)
        return self.classifier(x.flatten(1))  # type: ignore[no-any-return]  # (n, num_classes)


def make_features(plan: Sequence[int | str], batch_norm: bool) -> list[nn.Module]:
    """The layers of a plan: a 3 x 3 convolution for each number of channels, "M" halves the image."""
    found: list[nn.Module] = []
    channels = 3
    for wide in plan:
        if isinstance(wide, str):
            found.append(nn.MaxPool2d(2, 2))
            continue
        found.append(nn.Conv2d(channels, wide, 3, padding=1))
        if batch_norm:
            found.append(nn.BatchNorm2d(wide))
        found.append(nn.ReLU(inplace=True))
        channels = wide
    return found


def _publish(layers: int, batch_norm: bool, parameters: str) -> Callable[..., VGG]:
    def build(num_classes: int = 1000, dropout: float = 0.5, init_weights: bool = True) -> VGG:
        return VGG(layers, num_classes, batch_norm, dropout, init_weights)

    name, kind = (f"vgg{layers}_bn", " with batch normalization") if batch_norm else (f"vgg{layers}", "")
    return rename_function(build, name, f"A new VGG of {layers} layers{kind}: {parameters} parameters.")


vgg11, vgg11_bn = _publish(11, False, "132,863,336"), _publish(11, True, "132,868,840")
vgg13, vgg13_bn = _publish(13, False, "133,047,848"), _publish(13, True, "133,053,736")
vgg16, vgg16_bn = _publish(16, False, "138,357,544"), _publish(16, True, "138,365,992")
vgg19, vgg19_bn = _publish(19, False, "143,667,240"), _publish(19, True, "143,678,248")
