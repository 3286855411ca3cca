"""Published weights of networks: an enum for each network, with torchvision's names, where each file lies and how it wants its images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tritensor import hub
from tritensor.ground.errors import DownloadError

_ADDRESS = "https://download.pytorch.org/models/"


class _Meta(dict[str, Any]):
    """What is known of weights; the names of ImageNet's classes are not."""

    def __missing__(self, key: str) -> Any:
        said = (
            "the names of ImageNet's classes are not in tritensor; take them from the data set"
            if key == "categories"
            else f"has {list(self)}"
        )
        raise KeyError(f"meta[{key!r}]: {said}")


@dataclass
class Weights:
    """Where a file of weights lies, what makes a transform of the images that it wants, and what is known of it."""

    url: str
    transforms: Callable[..., Any]
    meta: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weights):
            return NotImplemented
        return self.url == other.url and dict(self.meta) == dict(other.meta)  # two partials of one function are not equal

    def __hash__(self) -> int:
        return hash(self.url)


class WeightsEnum(Enum):
    """The weights of one network. Each member is one file; DEFAULT is the best of them."""

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """The member that a name or a member means; None for None. Raises TypeError for a member of another network's, KeyError for another name."""
        if obj is None or isinstance(obj, cls):
            return obj
        if isinstance(obj, str):
            return cls[obj.removeprefix(cls.__name__ + ".")]
        raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}.")

    def get_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The weights, from hub.get_dir() or the network; arguments are those of hub.load_state_dict_from_url.

        Raises DownloadError, which names the file and where it may be put by hand, where it cannot be had.
        """
        try:
            return hub.load_state_dict_from_url(self.url, *args, **kwargs)
        except DownloadError as error:
            raise DownloadError(
                f"{self}: no weights come with tritensor, and {self.url} cannot be had: {error}; put the file into {hub.get_dir()}/checkpoints, "
                "or build the network without weights and give load_state_dict a state dict of yours"
            ) from error

    @property
    def url(self) -> str:
        """Where the file is published."""
        return self.value.url  # type: ignore[no-any-return]

    @property
    def transforms(self) -> Callable[..., Any]:
        """What makes the transform of the images that the weights were trained with: `weights.transforms()(image)`."""
        return self.value.transforms  # type: ignore[no-any-return]

    @property
    def meta(self) -> Mapping[str, Any]:
        """What is known of the weights: how many they are, the least size of images, the number of classes."""
        return self.value.meta  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


def _transform(**settings: Any) -> Any:
    from tritensor.vision.transforms._presets import ImageClassification  # late: transforms load Pillow

    return ImageClassification(**{"crop_size": 224, **settings})


_BETTER = {"resize_size": 232}  # torchvision's second recipe resizes to 232
_FEATURES = {"mean": (0.48235, 0.45882, 0.40784), "std": (1 / 255, 1 / 255, 1 / 255)}
_V1, _V2 = "IMAGENET1K_V1", "IMAGENET1K_V2"
# {enum: (parameters, least size of images, {member: (file, settings of its transform)})}; the last of the first two recipes is DEFAULT.
_FILES: dict[str, tuple[int, int, dict[str, tuple[str, dict[str, Any]]]]] = {
    "AlexNet_Weights": (61100840, 63, {_V1: ("alexnet-owt-7be5be79", {})}),
    "DenseNet121_Weights": (7978856, 29, {_V1: ("densenet121-a639ec97", {})}),
    "DenseNet161_Weights": (28681000, 29, {_V1: ("densenet161-8d451a50", {})}),
    "DenseNet169_Weights": (14149480, 29, {_V1: ("densenet169-b2777c0a", {})}),
    "DenseNet201_Weights": (20013928, 29, {_V1: ("densenet201-c1103571", {})}),
    "ResNet18_Weights": (11689512, 1, {_V1: ("resnet18-f37072fd", {})}),
    "ResNet34_Weights": (21797672, 1, {_V1: ("resnet34-b627a593", {})}),
    "ResNet50_Weights": (25557032, 1, {_V1: ("resnet50-0676ba61", {}), _V2: ("resnet50-11ad3fa6", _BETTER)}),
    "ResNet101_Weights": (44549160, 1, {_V1: ("resnet101-63fe2227", {}), _V2: ("resnet101-cd907fc2", _BETTER)}),
    "ResNet152_Weights": (60192808, 1, {_V1: ("resnet152-394f9c45", {}), _V2: ("resnet152-f82ba261", _BETTER)}),
    "ResNeXt50_32X4D_Weights": (25028904, 1, {_V1: ("resnext50_32x4d-7cdf4587", {}), _V2: ("resnext50_32x4d-1a0047aa", _BETTER)}),
    "ResNeXt101_32X8D_Weights": (88791336, 1, {_V1: ("resnext101_32x8d-8ba56ff5", {}), _V2: ("resnext101_32x8d-110c445d", _BETTER)}),
    "ResNeXt101_64X4D_Weights": (83455272, 1, {_V1: ("resnext101_64x4d-173b62eb", _BETTER)}),
    "Wide_ResNet50_2_Weights": (68883240, 1, {_V1: ("wide_resnet50_2-95faca4d", {}), _V2: ("wide_resnet50_2-9ba9bcbe", _BETTER)}),
    "Wide_ResNet101_2_Weights": (126886696, 1, {_V1: ("wide_resnet101_2-32ee1156", {}), _V2: ("wide_resnet101_2-d733dc28", _BETTER)}),
    "SqueezeNet1_0_Weights": (1248424, 21, {_V1: ("squeezenet1_0-b66bff10", {})}),
    "SqueezeNet1_1_Weights": (1235496, 17, {_V1: ("squeezenet1_1-b8a52dc0", {})}),
    "VGG11_Weights": (132863336, 32, {_V1: ("vgg11-8a719046", {})}),
    "VGG11_BN_Weights": (132868840, 32, {_V1: ("vgg11_bn-6002323d", {})}),
    "VGG13_Weights": (133047848, 32, {_V1: ("vgg13-19584684", {})}),
    "VGG13_BN_Weights": (133053736, 32, {_V1: ("vgg13_bn-abd245e5", {})}),
    "VGG16_Weights": (138357544, 32, {_V1: ("vgg16-397923af", {}), "IMAGENET1K_FEATURES": ("vgg16_features-amdegroot-88682ab5", _FEATURES)}),
    "VGG16_BN_Weights": (138365992, 32, {_V1: ("vgg16_bn-6c64b313", {})}),
    "VGG19_Weights": (143667240, 32, {_V1: ("vgg19-dcbb9e9d", {})}),
    "VGG19_BN_Weights": (143678248, 32, {_V1: ("vgg19_bn-c79401a0", {})}),
}  # fmt: skip


def _make(name: str) -> Any:
    parameters, least, files = _FILES[name]
    members: dict[str, Weights] = {}
    for member, (file, settings) in files.items():
        meta = _Meta(min_size=(least, least), num_params=parameters, num_classes=1000)
        members[member] = Weights(f"{_ADDRESS}{file}.pth", functools.partial(_transform, **settings), meta)
    members["DEFAULT"] = members.get(_V2, members[_V1])
    make: Any = WeightsEnum
    made = make(name, members, module="tritensor.vision.models")
    made.__doc__ = f"Published weights of {name.removesuffix('_Weights')}: {', '.join(files)}."
    return made


ENUMS: dict[str, Any] = {name: _make(name) for name in _FILES}
