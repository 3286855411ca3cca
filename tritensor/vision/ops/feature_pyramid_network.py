"""Feature pyramid network (Lin et al. 2017): maps of several sizes, each with what the coarser ones know."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.vision.ops.layers import Conv2dNormActivation

Maps = tuple[list[Tensor], list[str]]


class ExtraFPNBlock(nn.Module):
    """What makes more levels: (results, inputs, names) to (results, names)."""

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> Maps:
        raise NotImplementedError(f"{type(self).__name__}.forward: define it; ExtraFPNBlock is the class that such blocks derive from")


class LastLevelMaxPool(ExtraFPNBlock):
    """A level "pool", every second element of the coarsest."""

    def forward(self, x: list[Tensor], y: list[Tensor], names: list[str]) -> Maps:  # type: ignore[override]  # torchvision's names
        return [*x, F.max_pool2d(x[-1], kernel_size=1, stride=2, padding=0)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two levels "p6" and "p7", by convolutions that stride."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for module in (self.p6, self.p7):
            init.kaiming_uniform_(module.weight, a=1)
            init.constant_(module.bias, 0)
        self.use_P5 = in_channels == out_channels

    def forward(self, p: list[Tensor], c: list[Tensor], names: list[str]) -> Maps:
        p6 = self.p6(p[-1] if self.use_P5 else c[-1])
        return [*p, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]


class FeaturePyramidNetwork(nn.Module):
    """A dict of maps (n, in_channels_list[i], h, w), from fine to coarse, to one of maps (n, out_channels, h, w) of the same names.

    `extra_blocks` makes more levels of them. Raises ValueError for a level of no channels.
    """

    def __init__(
        self, in_channels_list: list[int], out_channels: int, extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if 0 in in_channels_list:
            raise ArgumentError("FeaturePyramidNetwork: in_channels=0 is currently not supported; leave that level out")

        def block(channels: int, kernel: int) -> nn.Module:
            return Conv2dNormActivation(channels, out_channels, kernel, padding=kernel // 2, norm_layer=norm_layer, activation_layer=None)

        self.inner_blocks = nn.ModuleList([block(c, 1) for c in in_channels_list])
        self.layer_blocks = nn.ModuleList([block(out_channels, 3) for _ in in_channels_list])
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    init.constant_(module.bias, 0)
        self.extra_blocks = extra_blocks

    def forward(self, x: dict[str, Tensor]) -> dict[str, Tensor]:
        names, maps = list(x), list(x.values())
        inner = self.inner_blocks[-1](maps[-1])
        results = [self.layer_blocks[-1](inner)]
        for i in range(len(maps) - 2, -1, -1):
            lateral = self.inner_blocks[i](maps[i])
            inner = lateral + F.interpolate(inner, size=tuple(lateral.shape[-2:]), mode="nearest")
            results.insert(0, self.layer_blocks[i](inner))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results, strict=True))
