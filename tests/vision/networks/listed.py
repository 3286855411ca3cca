"""Networks of torchvision's whose parameters' names, and what small ones of their kind compute, are noted; of torchvision's and of ours alike."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np

# Of RegNet only small ones: torchvision's cannot be made without memory.
NAMES = [
    "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", *(f"efficientnet_{s}" for s in ("b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7")),
    *(f"efficientnet_v2_{s}" for s in "sml"), *(f"convnext_{s}" for s in ("tiny", "small", "base", "large")),
    *(f"vit_{s}" for s in ("b_16", "b_32", "l_16", "l_32", "h_14")), *(f"swin_{s}" for s in ("t", "s", "b", "v2_t", "v2_s", "v2_b")), "regnet_y_400mf",
    "regnet_x_400mf", "regnet_x_800mf", "regnet_x_1_6gf", *(f"shufflenet_v2_{s}" for s in ("x0_5", "x1_0", "x1_5", "x2_0")),
    *(f"mnasnet{s}" for s in ("0_5", "0_75", "1_0", "1_3")),
]  # fmt: skip
SEGMENTATION = [
    "fcn_resnet50",
    "fcn_resnet101",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
    "deeplabv3_mobilenet_v3_large",
    "lraspp_mobilenet_v3_large",
]


def without_weights(name: str) -> dict[str, Any]:
    """Settings of a network that nothing is downloaded for, with all of its heads."""
    return {} if name not in SEGMENTATION else {"weights_backbone": None, "aux_loss": None if name.startswith("lraspp") else True}


def small_networks(models: Any, nn: Any) -> dict[str, Any]:
    """Functions that make a small network of each kind; `models` has torchvision's modules."""
    e, c, s, v = models.efficientnet, models.convnext, models.swin_transformer, models.vision_transformer
    stages = [e.FusedMBConvConfig(1, 3, 1, 8, 8, 1), e.FusedMBConvConfig(2, 3, 2, 8, 16, 2), e.MBConvConfig(4, 5, 2, 16, 24, 2)]
    blocks = [c.CNBlockConfig(8, 16, 1), c.CNBlockConfig(16, None, 2)]
    swin = functools.partial(s.SwinTransformer, [4, 4], 8, [2, 2], [1, 2], num_classes=3)
    params = models.regnet.BlockParams
    return {
        "MobileNetV2": lambda: models.MobileNetV2(3, 0.25, [[1, 16, 1, 1], [6, 24, 2, 2]]),
        "MobileNetV3": lambda: models.mobilenet_v3_small(num_classes=3, width_mult=0.25, reduced_tail=True, dilated=True),
        "EfficientNet": lambda: models.EfficientNet(stages, 0.2, num_classes=3, last_channel=32),
        "ConvNeXt": lambda: models.ConvNeXt(blocks, 0.1, 0.5, num_classes=3),
        "VisionTransformer": lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=3, representation_size=8),
        "stem": lambda: models.VisionTransformer(
            32, 8, 1, 2, 16, 32, num_classes=3, conv_stem_configs=[v.ConvStemConfig(8, 3, 2), v.ConvStemConfig(16, 3, 4)]
        ),
        "Swin": lambda: swin(window_size=[3, 3]),
        "SwinV2": lambda: swin(window_size=[4, 3], block=s.SwinTransformerBlockV2, downsample_layer=s.PatchMergingV2),
        "RegNetY": lambda: models.RegNet(params.from_init_params(6, 16, 12.3, 2.2, 8, se_ratio=0.25), num_classes=3),
        "RegNetX": lambda: models.RegNet(params.from_init_params(4, 24, 8.8, 2.5, 16), num_classes=3),
        "ShuffleNetV2": lambda: models.ShuffleNetV2([2, 1, 2], [8, 16, 24, 32, 48], num_classes=3),
        "MNASNet": lambda: models.MNASNet(0.15, num_classes=3),
        "DeepLabHead": lambda: nn.Sequential(models.segmentation.DeepLabHead(3, 3, (1, 2)), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    }  # fmt: skip


def named(network: Any) -> list[Any]:
    """(how many numbers, a checksum of the names and sizes of all that its state dict holds, in order)."""
    state = network.state_dict()
    text = " ".join(f"{name}{tuple(int(n) for n in value.shape)}" for name, value in state.items())
    return [sum(int(np.prod(tuple(p.shape))) for p in network.parameters()), zlib.crc32(text.encode())]


def computed(torch: Any, network: Any) -> list[float]:
    """The scores of an image, by weights that follow from their names."""
    network = network.eval()
    for name, value in network.state_dict().items():
        if value.is_floating_point() and "relative_coords" not in name:
            draws = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(value.shape))
            scaled = 1 + abs(draws) * 0.1 if name.endswith("running_var") or (name.endswith("weight") and value.ndim == 1) else draws
            scaled = scaled / max(1, np.prod(value.shape[1:])) ** 0.5 if value.ndim > 1 else scaled
            value.copy_(torch.tensor(scaled.astype(np.float32).tolist()).reshape(tuple(value.shape)))
    image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    with torch.no_grad():
        scores = network(torch.tensor(image.tolist()))
    return [round(float(score), 5) for score in scores[0]]
