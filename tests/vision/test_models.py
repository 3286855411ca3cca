"""Networks by name, and their published weights: enums, files, refusals by name."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tritensor as tt
from tritensor import hub, nn
from tritensor.ground.errors import DownloadError
from tritensor.hub import loading
from tritensor.vision import models
from tritensor.vision.models import feature_extraction
from tritensor.vision.models._utils import IntermediateLayerGetter
from tritensor.vision.models.densenet import DenseNet, rename_published

SMALL = tt.zeros(1, 3, 40, 40)


def test_names_of_networks_and_weights() -> None:
    assert models.list_models(include="vgg1*", exclude="*bn") == ["vgg11", "vgg13", "vgg16", "vgg19"]
    best = models.get_weight("ResNet50_Weights.DEFAULT")
    assert best is models.ResNet50_Weights.IMAGENET1K_V2
    assert models.get_model_weights("resnet50") is models.get_model_weights(models.resnet50) is models.ResNet50_Weights
    assert repr(best) == "ResNet50_Weights.IMAGENET1K_V2"
    assert (best.meta["num_params"], best.url) == (25557032, "https://download.pytorch.org/models/resnet50-11ad3fa6.pth")
    assert copy.deepcopy(best) is best
    assert pickle.loads(pickle.dumps(best)) is best
    with pytest.raises(KeyError, match="names of ImageNet's classes are not in tritensor"):
        best.meta["categories"]
    with pytest.raises(ValueError, match="Invalid weight name provided: 'resnet50'"):
        models.get_weight("resnet50")
    with pytest.raises(TypeError, match="expected ResNet18_Weights but received ResNet50_Weights"):
        models.resnet18(weights=best)
    with pytest.raises(AttributeError, match="'googlenet' in tritensor; the networks here are alexnet"):
        models.googlenet  # noqa: B018
    with pytest.raises(NotImplementedError, match=r"create_feature_extractor: .* torch\.fx"):
        feature_extraction.create_feature_extractor(nn.Identity(), ["x"])


def test_weights_that_cannot_be_had_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise DownloadError("no network")

    monkeypatch.setattr(loading, "download", refuse)
    monkeypatch.setattr(hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(
        DownloadError, match=r"ResNet18_Weights.IMAGENET1K_V1: no weights come with tritensor, and .*resnet18-f37072fd.pth cannot be had"
    ):
        models.resnet18(weights="DEFAULT")
    with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 3"):
        models.resnet18(weights="DEFAULT", num_classes=3)


def test_weights_of_the_network_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    given = models.squeezenet1_1().state_dict()
    monkeypatch.setattr(hub, "load_state_dict_from_url", lambda url, **_: given if url.endswith("squeezenet1_1-b8a52dc0.pth") else None)
    made = models.get_model("squeezenet1_1", weights="DEFAULT")
    assert all(bool((v == given[k]).all()) for k, v in made.state_dict().items())


def test_networks_take_images() -> None:
    dense = DenseNet(4, (2, 2), 8, num_classes=3, memory_efficient=True)
    out = dense(SMALL.requires_grad_())
    out.sum().backward()
    assert out.shape == (1, 3)
    assert dense.features.conv0.weight.grad is not None
    assert [*dense.features.denseblock1] == ["denselayer1", "denselayer2"]
    old = {"features.denseblock1.denselayer2.norm.1.weight": 0, "classifier.bias": 1}
    assert rename_published(old) == {"features.denseblock1.denselayer2.norm1.weight": 0, "classifier.bias": 1}
    squeeze = models.squeezenet1_0(num_classes=3)
    assert squeeze(SMALL).shape == (1, 3)


def test_resnets_settings() -> None:
    block = models.resnet.Bottleneck
    made = models.ResNet(block, (1, 1, 1, 1), 5, True, 2, 8, [False, True, True], lambda c: nn.GroupNorm(2, c))
    assert float(made.layer1[0].bn3.weight.sum()) == 0.0
    assert made.layer3[0].conv2.stride == (1, 1)
    assert made.layer4[0].conv2.dilation == (2, 2)
    assert made.layer4[0].conv2.groups == 2
    found = IntermediateLayerGetter(made, {"layer2": "a", "layer4": "b"})(SMALL)
    assert {k: tuple(v.shape) for k, v in found.items()} == {"a": (1, 512, 5, 5), "b": (1, 2048, 5, 5)}
    with pytest.raises(ValueError, match="return_layers are not present in model"):
        IntermediateLayerGetter(made, {"layer9": "a"})
    with pytest.raises(ValueError, match="replace_stride_with_dilation is"):
        models.ResNet(block, (1, 1, 1, 1), replace_stride_with_dilation=[True])
    plan = models.vgg.make_layers([8, "M"], batch_norm=True)
    assert [type(m).__name__ for m in plan] == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]


def test_preset_makes_what_weights_want() -> None:
    image = tt.full((3, 300, 260), 128, dtype=tt.uint8)
    out = models.VGG16_Weights.DEFAULT.transforms()(image)
    assert out.shape == (3, 224, 224)
    assert abs(float(out[0, 0, 0]) - (128 / 255 - 0.485) / 0.229) < 1e-5
