"""Networks by their names, as torchvision's functions of these names build them, with or without published weights."""

from __future__ import annotations

import fnmatch
import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from tritensor import models, nn
from tritensor.ground.errors import ArgumentError
from tritensor.models.resnet import Bottleneck
from tritensor.tensor.public_api.publish import rename_function
from tritensor.vision.models.densenet import DenseNet, rename_published
from tritensor.vision.models.networks import convnext, efficientnet, mnasnet, regnet, shufflenet, swin, vision_transformer
from tritensor.vision.models.networks.convnext import make_convnext
from tritensor.vision.models.networks.efficientnet import make_efficientnet
from tritensor.vision.models.networks.mnasnet import make_mnasnet
from tritensor.vision.models.networks.mobilenetv2 import MobileNetV2
from tritensor.vision.models.networks.mobilenetv3 import make_mobilenet_v3
from tritensor.vision.models.networks.regnet import make_regnet
from tritensor.vision.models.networks.shufflenet import make_shufflenet
from tritensor.vision.models.networks.swin import make_swin
from tritensor.vision.models.networks.vision_transformer import make_vision_transformer
from tritensor.vision.models.squeezenet import SqueezeNet
from tritensor.vision.models.weights import ENUMS, WeightsEnum

Builder = Callable[..., nn.Module]


def _resnext(layers: tuple[int, ...], groups: int, width: int) -> Builder:
    return lambda **settings: models.ResNet(Bottleneck, layers, **{"groups": groups, "width_per_group": width, **settings})


def _densenet(growth_rate: int, blocks: tuple[int, ...], first: int) -> Builder:
    return lambda **settings: DenseNet(growth_rate, blocks, first, **settings)


def _squeezenet(version: str) -> Builder:
    return lambda **settings: SqueezeNet(version, **settings)


def _sizes(make: Callable[..., nn.Module], sizes: Iterable[str], name: str, enum: str) -> dict[str, tuple[str, Builder]]:
    """Networks of one kind by their sizes, whose names are put into the network's and the enum's."""
    spelt = {"tiny": "Tiny", "small": "Small", "base": "Base", "large": "Large"}
    return {name.format(size): (enum.format(spelt.get(size, size.upper())), functools.partial(make, size)) for size in sizes}


_MADE: dict[str, tuple[str, Builder]] = {  # {name: (its enum of weights, what builds it)}
    "alexnet": ("AlexNet_Weights", models.alexnet),
    **{f"resnet{n}": (f"ResNet{n}_Weights", getattr(models, f"resnet{n}")) for n in (18, 34, 50, 101, 152)},
    **{f"vgg{n}": (f"VGG{n}_Weights", getattr(models, f"vgg{n}")) for n in (11, 13, 16, 19)},
    **{f"vgg{n}_bn": (f"VGG{n}_BN_Weights", getattr(models, f"vgg{n}_bn")) for n in (11, 13, 16, 19)},
    "resnext50_32x4d": ("ResNeXt50_32X4D_Weights", _resnext((3, 4, 6, 3), 32, 4)),
    "resnext101_32x8d": ("ResNeXt101_32X8D_Weights", _resnext((3, 4, 23, 3), 32, 8)),
    "resnext101_64x4d": ("ResNeXt101_64X4D_Weights", _resnext((3, 4, 23, 3), 64, 4)),
    "wide_resnet50_2": ("Wide_ResNet50_2_Weights", _resnext((3, 4, 6, 3), 1, 128)),
    "wide_resnet101_2": ("Wide_ResNet101_2_Weights", _resnext((3, 4, 23, 3), 1, 128)),
    "densenet121": ("DenseNet121_Weights", _densenet(32, (6, 12, 24, 16), 64)),
    "densenet161": ("DenseNet161_Weights", _densenet(48, (6, 12, 36, 24), 96)),
    "densenet169": ("DenseNet169_Weights", _densenet(32, (6, 12, 32, 32), 64)),
    "densenet201": ("DenseNet201_Weights", _densenet(32, (6, 12, 48, 32), 64)),
    "squeezenet1_0": ("SqueezeNet1_0_Weights", _squeezenet("1_0")),
    "squeezenet1_1": ("SqueezeNet1_1_Weights", _squeezenet("1_1")),
    "mobilenet_v2": ("MobileNet_V2_Weights", MobileNetV2),
    **_sizes(make_mobilenet_v3, ("large", "small"), "mobilenet_v3_{}", "MobileNet_V3_{}_Weights"),
    **_sizes(make_efficientnet, efficientnet.SIZES, "efficientnet_{}", "EfficientNet_{}_Weights"),
    **_sizes(make_convnext, convnext.SIZES, "convnext_{}", "ConvNeXt_{}_Weights"),
    **_sizes(make_vision_transformer, vision_transformer.SIZES, "vit_{}", "ViT_{}_Weights"),
    **_sizes(make_swin, swin.SIZES, "swin_{}", "Swin_{}_Weights"),
    **_sizes(make_regnet, regnet.SIZES, "regnet_{}", "RegNet_{}_Weights"),
    **_sizes(make_shufflenet, shufflenet.SIZES, "shufflenet_v2_{}", "ShuffleNet_V2_{}_Weights"),
    **_sizes(make_mnasnet, mnasnet.SIZES, "mnasnet{}", "MNASNet{}_Weights"),
}  # fmt: skip
BUILTIN_MODELS: dict[str, Builder] = {}


def _publish(name: str, enum: Any, build: Builder) -> Builder:
    def make(*, weights: Any = None, progress: bool = True, **settings: Any) -> nn.Module:
        if "pretrained" in settings:  # the word before the enums
            warnings.warn(
                "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future, please use 'weights' instead."
            )
            weights = enum.IMAGENET1K_V1 if settings.pop("pretrained") else None
        chosen = enum.verify(weights)
        if chosen is None:
            return build(**settings)
        classes = settings.setdefault("num_classes", 1000)
        if classes != 1000:
            raise ArgumentError(f"The parameter 'num_classes' expected value 1000 but got {classes} instead.")
        if name.startswith("vit_"):  # positions are those of one size
            settings.setdefault("image_size", chosen.meta["min_size"][0])
        state = chosen.get_state_dict(progress=progress, check_hash=True)  # before the network: it takes longer to build than to be refused
        made = build(**settings)
        made.load_state_dict(rename_published(state) if isinstance(made, DenseNet) else state)
        return made

    doc = f"A new {name}, as torchvision builds it; `weights` is a member of {enum.__name__}, or its name. Further settings are the network's own."
    return rename_function(make, name, doc)  # type: ignore[no-any-return]


for _name, (_enum, _build) in _MADE.items():
    BUILTIN_MODELS[_name] = _publish(_name, ENUMS[_enum], _build)
ENUM_OF: dict[str, Any] = {name: ENUMS[enum] for name, (enum, _) in _MADE.items()}


def register_model(name: str | None = None) -> Callable[[Builder], Builder]:
    """A decorator that lets get_model know a function. Raises ValueError for a name that is taken."""

    def register(fn: Builder) -> Builder:
        key = name if name is not None else fn.__name__
        if key in BUILTIN_MODELS:
            raise ArgumentError(f"An entry is already registered under the name '{key}'.")
        BUILTIN_MODELS[key] = fn
        return fn

    return register


def list_models(module: Any = None, include: Iterable[str] | str | None = None, exclude: Iterable[str] | str | None = None) -> list[str]:
    """The names that get_model takes, sorted. `include` and `exclude` are patterns, "res*", or lists of them; `module` one that the networks are defined in."""
    found = {n for n, build in BUILTIN_MODELS.items() if module is None or hasattr(module, n)}

    def matching(patterns: Iterable[str] | str) -> set[str]:
        return {n for p in ([patterns] if isinstance(patterns, str) else patterns) for n in fnmatch.filter(found, p)}

    if include:
        found = matching(include)
    return sorted(found - matching(exclude) if exclude else found)


def get_model_builder(name: str) -> Builder:
    """The function that builds a network. Raises ValueError for a name that is not here."""
    found = BUILTIN_MODELS.get(name.lower())
    if found is None:
        raise ArgumentError(f"Unknown model {name}; there are {', '.join(list_models())}")
    return found


def get_model(name: str, **config: Any) -> nn.Module:
    """A new network by its name. Raises ValueError for one that is not here."""
    return get_model_builder(name)(**config)


def get_model_weights(name: str | Builder) -> Any:
    """The enum of a network's weights, of its name or of the function that builds it. Raises ValueError where there is none."""
    key = (name if isinstance(name, str) else name.__name__).lower()
    if key not in ENUM_OF:
        raise ArgumentError(f"Unknown model {key}; there are {', '.join(ENUM_OF)}")
    return ENUM_OF[key]


def get_weight(name: str) -> WeightsEnum:
    """The weights that a text names, "ResNet50_Weights.IMAGENET1K_V1". Raises ValueError where there are none of the name."""
    enum, dot, member = name.partition(".")
    if not dot or not member:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    if enum not in ENUMS:
        raise ValueError(f"The weight enum '{enum}' is not here; there are {', '.join(ENUMS)}")
    found: WeightsEnum = ENUMS[enum][member]
    return found
