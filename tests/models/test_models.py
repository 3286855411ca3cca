"""Models have the parameter counts and names of their published weights, and give scores of the right shape."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor import models, nn
from tritensor.models.resnet import BasicBlock

PUBLISHED = {
    "lenet": 61_706, "alexnet": 61_100_840, "vgg11": 132_863_336, "vgg11_bn": 132_868_840, "vgg13": 133_047_848, "vgg13_bn": 133_053_736,
    "vgg16": 138_357_544, "vgg16_bn": 138_365_992, "vgg19": 143_667_240, "vgg19_bn": 143_678_248, "resnet18": 11_689_512, "resnet34": 21_797_672,
    "resnet50": 25_557_032, "resnet101": 44_549_160, "resnet152": 60_192_808, "unet": 31_037_698, "gpt2": 124_439_808,
}  # fmt: skip


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters are not drawn: hundreds of millions of them are only counted."""
    for name in ("normal_", "uniform_", "kaiming_normal_", "kaiming_uniform_", "zeros_"):
        monkeypatch.setattr(nn.init, name, lambda t, *args, **kwargs: t)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    assert count(getattr(models, name)()) == PUBLISHED[name]


def test_mistakes_are_named() -> None:
    small = models.GPT2(models.GPT2Config(vocab_size=7, n_positions=3, n_embd=4, n_layer=1, n_head=1))
    for make, kind, message in [
        (lambda: small(tt.tensor([1, 2])), tt.ShapeError, r"GPT2: ids \(2,\) has 1 dimensions; give \(batch, tokens\)"),
        (lambda: small(tt.ones(1, 4, dtype=tt.int64)), IndexError, "GPT2: 4 tokens, and there are 3 positions"),
        (lambda: models.ResNet(BasicBlock, (1, 1, 1)), ValueError, r"ResNet: layers is \(1, 1, 1\); give the number of blocks"),
        (lambda: models.VGG(12), ValueError, "VGG: there is no VGG of 12 layers"),
        (lambda: models.gpt2("huge"), ValueError, "gpt2: size 'huge'; give one of"),
    ]:
        with pytest.raises(kind, match=message):
            make()
