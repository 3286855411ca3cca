"""Networks under torchvision's path: those of tritensor.models that torchvision has, with its signatures, without weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor import models
from tritensor.models import VGG as VGG
from tritensor.models import AlexNet as AlexNet
from tritensor.models import ResNet as ResNet

_NAMES = (
    "alexnet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
)  # fmt: skip


def _refuse_weights(name: str) -> Callable[..., Any]:
    build = getattr(models, name)

    @functools.wraps(build)
    def build_model(*, weights: Any = None, progress: bool = True, pretrained: bool = False, **kwargs: Any) -> Any:
        if weights is not None or pretrained:  # no silent network of random weights where trained ones are asked for
            given = f"weights={weights!r}" if weights is not None else "pretrained=True"
            raise NotImplementedError(
                f"models.{name}: {given}: no weights come with tritensor; build it without, and give load_state_dict a state dict of yours, "
                "or hub.load_state_dict_from_url(url) of an address that has one"
            )
        return build(**kwargs)

    return build_model


alexnet = _refuse_weights("alexnet")
resnet18, resnet34, resnet50, resnet101, resnet152 = (_refuse_weights(f"resnet{n}") for n in (18, 34, 50, 101, 152))
vgg11, vgg13, vgg16, vgg19 = (_refuse_weights(f"vgg{n}") for n in (11, 13, 16, 19))
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (_refuse_weights(f"vgg{n}_bn") for n in (11, 13, 16, 19))


def list_models() -> list[str]:
    """The names that get_model takes."""
    return sorted(_NAMES)


def get_model(name: str, **config: Any) -> Any:
    """A new network by its name. Raises ValueError for one that is not here."""
    if name not in _NAMES:
        raise ValueError(f"get_model: no {name!r} here; there are {', '.join(list_models())}")
    return globals()[name](**config)
