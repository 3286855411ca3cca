"""Networks have the parameters that torchvision's have, by name and in order, and compute from the same numbers the same scores."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.vision.networks.listed import NAMES, SEGMENTATION, computed, named, small_networks, without_weights
from tests.vision.networks.record import FILE
from tritensor.vision import models
from tritensor.vision.models import segmentation
from tritensor.vision.models.networks import convnext, efficientnet, mobilenetv2, mobilenetv3, regnet, shufflenet, swin, vision_transformer
from tritensor.vision.models.segmentation import heads

RECORDED = json.loads(FILE.read_text())
SPACE: Any = SimpleNamespace(
    **{name: getattr(models, name) for name in models.__all__}, efficientnet=efficientnet, convnext=convnext, swin_transformer=swin,
    vision_transformer=vision_transformer, regnet=regnet, segmentation=heads,
)  # fmt: skip
SMALL = small_networks(SPACE, tt.nn)


@pytest.mark.parametrize("name", [*NAMES, *SEGMENTATION])
def test_parameters_have_the_names_of_published_weights(name: str) -> None:
    with tt.device("meta"):
        assert named(models.get_model(name, **without_weights(name))) == RECORDED[name][:2]
    files = [[w.name, w.url.rpartition("/")[2], w.meta["num_params"], w.meta["min_size"][0]] for w in models.get_model_weights(name)]
    assert files == RECORDED[name][2:]


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_compute_what_torchvisions_do(name: str) -> None:
    network = SMALL[name]()
    assert named(network) == RECORDED[name][:2]
    assert np.allclose(computed(tt, network), RECORDED[name][2], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["MobileNetV3", "EfficientNet", "ConvNeXt", "VisionTransformer", "SwinV2", "RegNetY"])
def test_networks_are_trained(name: str) -> None:
    tt.manual_seed(0)
    network = SMALL[name]().train()
    images, labels = tt.rand(4, 3, 32, 32), tt.tensor([0, 1, 2, 0])
    tt.nn.functional.cross_entropy(network(images), labels).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in network.parameters())


def test_classes_of_pixels() -> None:
    made = segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=3).eval()
    assert made(tt.rand(1, 3, 40, 48))["out"].shape == (1, 3, 40, 48)
    layers = tt.nn.ModuleDict({"out": tt.nn.Conv2d(3, 8, 3, 2), "aux": tt.nn.Conv2d(3, 4, 3, 2)})

    class Backbone(tt.nn.Module):
        def forward(self, x: tt.Tensor) -> dict[str, tt.Tensor]:
            return {name: layer(x) for name, layer in layers.items()}

    found = segmentation.FCN(Backbone(), heads.FCNHead(8, 5), heads.FCNHead(4, 5))(tt.rand(2, 3, 20, 24))
    assert {name: tuple(scores.shape) for name, scores in found.items()} == {"out": (2, 5, 20, 24), "aux": (2, 5, 20, 24)}
    preset = models.get_weight("FCN_ResNet50_Weights.DEFAULT").transforms()
    assert preset(tt.zeros(3, 60, 65, dtype=tt.uint8)).shape == (3, 520, 563)
    with pytest.raises(NotImplementedError, match="does not use auxiliary loss"):
        segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, aux_loss=True)
    with pytest.raises(ValueError, match="expected value 21 but got 3"):
        segmentation.fcn_resnet50(weights="DEFAULT", num_classes=3)


def test_positions_for_another_size() -> None:
    state = models.VisionTransformer(32, 8, 1, 2, 16, 32).state_dict()
    larger = vision_transformer.interpolate_embeddings(48, 8, state, reset_heads=True)
    assert larger["encoder.pos_embedding"].shape == (1, 37, 16)
    assert not any(name.startswith("heads") for name in larger)
    found = models.VisionTransformer(48, 8, 1, 2, 16, 32).load_state_dict(larger, strict=False)
    assert {name.partition(".")[0] for name in found.missing_keys} == {"heads"}


def test_presets_of_newer_weights() -> None:
    preset = models.EfficientNet_B3_Weights.DEFAULT.transforms()
    assert (preset.crop_size, preset.resize_size, preset.interpolation.value) == ([300], [320], "bicubic")
    assert models.ViT_H_14_Weights.DEFAULT.name == "IMAGENET1K_SWAG_E2E_V1"


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: models.MobileNetV2(inverted_residual_setting=[]), ValueError, "non-empty or a 4-element list"),
        (lambda: models.MobileNetV3([], 8), ValueError, "should not be empty"),
        (lambda: models.EfficientNet([3], 0.1), TypeError, "should be List"),  # type: ignore[list-item]
        (lambda: models.VisionTransformer(30, 8, 1, 2, 16, 32), ValueError, "indivisible by patch size! image_size 30, patch_size 8"),
        (
            lambda: models.VisionTransformer(32, 8, 1, 2, 16, 32)(tt.ones(1, 3, 24, 32)),
            ValueError,
            r"Expected \(32, 32\) but got \(24, 32\)",
        ),
        (lambda: models.MNASNet(0.0), ValueError, "greater than 0.0"),
        (lambda: models.ShuffleNetV2([1], [2]), ValueError, "list of 3 positive ints"),
        (lambda: regnet.BlockParams.from_init_params(3, 7, 1.0, 2.0, 8), ValueError, "Invalid RegNet settings: w_0 7"),
        (lambda: mobilenetv2.InvertedResidual(8, 8, 3, 1), ValueError, "stride should be 1 or 2 instead of 3"),
        (lambda: shufflenet.InvertedResidual(8, 16, 1), ValueError, "Invalid combination of stride 1"),
        (lambda: swin.ShiftedWindowAttention(8, [3], [1], 1), ValueError, "must be of length 2"),
        (lambda: mobilenetv3.make_mobilenet_v3("huge"), KeyError, "huge"),
    ],
)
def test_mistakes_are_named(make: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        make()
