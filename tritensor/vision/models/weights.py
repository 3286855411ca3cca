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
    from tritensor.vision.transforms._presets import ImageClassification, InterpolationMode  # late: transforms load Pillow

    if "interpolation" in settings:
        settings["interpolation"] = InterpolationMode(settings["interpolation"])
    return ImageClassification(**{"crop_size": 224, **settings})


def _cubic(crop: int, resize: int | None = None) -> dict[str, Any]:
    return {"crop_size": crop, "resize_size": crop if resize is None else resize, "interpolation": "bicubic"}


_BETTER = {"resize_size": 232}  # torchvision's second recipe resizes to 232
_FEATURES = {"mean": (0.48235, 0.45882, 0.40784), "std": (1 / 255, 1 / 255, 1 / 255)}
_V1, _V2, _E2E, _LINEAR = "IMAGENET1K_V1", "IMAGENET1K_V2", "IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1"
# {enum: (parameters, least size of images, {member: (file, settings of its transform, and where they are others (parameters, least size))})}.
# The last of the first two recipes is DEFAULT, or else the first member.
_FILES: dict[str, tuple[int, int, dict[str, tuple[Any, ...]]]] = {
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
    "ConvNeXt_Base_Weights": (88591464, 32, {_V1: ("convnext_base-6075fbad", _BETTER)}),
    "ConvNeXt_Large_Weights": (197767336, 32, {_V1: ("convnext_large-ea097f82", _BETTER)}),
    "ConvNeXt_Small_Weights": (50223688, 32, {_V1: ("convnext_small-0c510722", {"resize_size": 230})}),
    "ConvNeXt_Tiny_Weights": (28589128, 32, {_V1: ("convnext_tiny-983f1562", {"resize_size": 236})}),
    "EfficientNet_B0_Weights": (5288548, 1, {_V1: ("efficientnet_b0_rwightman-7f5810bc", _cubic(224, 256))}),
    "EfficientNet_B1_Weights": (7794184, 1, {_V1: ("efficientnet_b1_rwightman-bac287d4", _cubic(240, 256)),
        _V2: ("efficientnet_b1-c27df63c", {"crop_size": 240, "resize_size": 255})}),
    "EfficientNet_B2_Weights": (9109994, 1, {_V1: ("efficientnet_b2_rwightman-c35c1473", _cubic(288))}),
    "EfficientNet_B3_Weights": (12233232, 1, {_V1: ("efficientnet_b3_rwightman-b3899882", _cubic(300, 320))}),
    "EfficientNet_B4_Weights": (19341616, 1, {_V1: ("efficientnet_b4_rwightman-23ab8bcd", _cubic(380, 384))}),
    "EfficientNet_B5_Weights": (30389784, 1, {_V1: ("efficientnet_b5_lukemelas-1a07897c", _cubic(456))}),
    "EfficientNet_B6_Weights": (43040704, 1, {_V1: ("efficientnet_b6_lukemelas-24a108a5", _cubic(528))}),
    "EfficientNet_B7_Weights": (66347960, 1, {_V1: ("efficientnet_b7_lukemelas-c5b4e57e", _cubic(600))}),
    "EfficientNet_V2_L_Weights": (118515272, 33, {_V1: ("efficientnet_v2_l-59c71312", {**_cubic(480), "mean": (0.5,) * 3, "std": (0.5,) * 3})}),
    "EfficientNet_V2_M_Weights": (54139356, 33, {_V1: ("efficientnet_v2_m-dc08266a", {"crop_size": 480, "resize_size": 480})}),
    "EfficientNet_V2_S_Weights": (21458488, 33, {_V1: ("efficientnet_v2_s-dd5fe13b", {"crop_size": 384, "resize_size": 384})}),
    "MNASNet0_5_Weights": (2218512, 1, {_V1: ("mnasnet0.5_top1_67.823-3ffadce67e", {})}),
    "MNASNet0_75_Weights": (3170208, 1, {_V1: ("mnasnet0_75-7090bc5f", _BETTER)}),
    "MNASNet1_0_Weights": (4383312, 1, {_V1: ("mnasnet1.0_top1_73.512-f206786ef8", {})}),
    "MNASNet1_3_Weights": (6282256, 1, {_V1: ("mnasnet1_3-a4c69d6f", _BETTER)}),
    "MobileNet_V2_Weights": (3504872, 1, {_V1: ("mobilenet_v2-b0353104", {}), _V2: ("mobilenet_v2-7ebf99e0", _BETTER)}),
    "MobileNet_V3_Large_Weights": (5483032, 1, {_V1: ("mobilenet_v3_large-8738ca79", {}), _V2: ("mobilenet_v3_large-5c1a4163", _BETTER)}),
    "MobileNet_V3_Small_Weights": (2542856, 1, {_V1: ("mobilenet_v3_small-047dcff4", {})}),
    "RegNet_X_16GF_Weights": (54278536, 1, {_V1: ("regnet_x_16gf-2007eb11", {}), _V2: ("regnet_x_16gf-ba3796d7", _BETTER)}),
    "RegNet_X_1_6GF_Weights": (9190136, 1, {_V1: ("regnet_x_1_6gf-e3633e7f", {}), _V2: ("regnet_x_1_6gf-a12f2b72", _BETTER)}),
    "RegNet_X_32GF_Weights": (107811560, 1, {_V1: ("regnet_x_32gf-9d47f8d0", {}), _V2: ("regnet_x_32gf-6eb8fdc6", _BETTER)}),
    "RegNet_X_3_2GF_Weights": (15296552, 1, {_V1: ("regnet_x_3_2gf-f342aeae", {}), _V2: ("regnet_x_3_2gf-7071aa85", _BETTER)}),
    "RegNet_X_400MF_Weights": (5495976, 1, {_V1: ("regnet_x_400mf-adf1edd5", {}), _V2: ("regnet_x_400mf-62229a5f", _BETTER)}),
    "RegNet_X_800MF_Weights": (7259656, 1, {_V1: ("regnet_x_800mf-ad17e45c", {}), _V2: ("regnet_x_800mf-94a99ebd", _BETTER)}),
    "RegNet_X_8GF_Weights": (39572648, 1, {_V1: ("regnet_x_8gf-03ceed89", {}), _V2: ("regnet_x_8gf-2b70d774", _BETTER)}),
    "RegNet_Y_128GF_Weights": (644812894, 1, {_E2E: ("regnet_y_128gf_swag-c8ce3e52", _cubic(384)),
        _LINEAR: ("regnet_y_128gf_lc_swag-cbe8ce12", _cubic(224))}),
    "RegNet_Y_16GF_Weights": (83590140, 1, {_V1: ("regnet_y_16gf-9e6ed7dd", {}),
        _V2: ("regnet_y_16gf-3e4a00f9", _BETTER), _E2E: ("regnet_y_16gf_swag-43afe44d", _cubic(384)),
        _LINEAR: ("regnet_y_16gf_lc_swag-f3ec0043", _cubic(224))}),
    "RegNet_Y_1_6GF_Weights": (11202430, 1, {_V1: ("regnet_y_1_6gf-b11a554e", {}), _V2: ("regnet_y_1_6gf-0d7bc02a", _BETTER)}),
    "RegNet_Y_32GF_Weights": (145046770, 1, {_V1: ("regnet_y_32gf-4dee3f7a", {}),
        _V2: ("regnet_y_32gf-8db6d4b5", _BETTER), _E2E: ("regnet_y_32gf_swag-04fdfa75", _cubic(384)),
        _LINEAR: ("regnet_y_32gf_lc_swag-e1583746", _cubic(224))}),
    "RegNet_Y_3_2GF_Weights": (19436338, 1, {_V1: ("regnet_y_3_2gf-b5a9779c", {}), _V2: ("regnet_y_3_2gf-9180c971", _BETTER)}),
    "RegNet_Y_400MF_Weights": (4344144, 1, {_V1: ("regnet_y_400mf-c65dace8", {}), _V2: ("regnet_y_400mf-e6988f5f", _BETTER)}),
    "RegNet_Y_800MF_Weights": (6432512, 1, {_V1: ("regnet_y_800mf-1b27b58c", {}), _V2: ("regnet_y_800mf-58fc7688", _BETTER)}),
    "RegNet_Y_8GF_Weights": (39381472, 1, {_V1: ("regnet_y_8gf-d0d0e4a8", {}), _V2: ("regnet_y_8gf-dc2b1b54", _BETTER)}),
    "ShuffleNet_V2_X0_5_Weights": (1366792, 1, {_V1: ("shufflenetv2_x0.5-f707e7126e", {})}),
    "ShuffleNet_V2_X1_0_Weights": (2278604, 1, {_V1: ("shufflenetv2_x1-5666bf0f80", {})}),
    "ShuffleNet_V2_X1_5_Weights": (3503624, 1, {_V1: ("shufflenetv2_x1_5-3c479a10", _BETTER)}),
    "ShuffleNet_V2_X2_0_Weights": (7393996, 1, {_V1: ("shufflenetv2_x2_0-8be3c8ee", _BETTER)}),
    "Swin_B_Weights": (87768224, 224, {_V1: ("swin_b-68c6b09e", _cubic(224, 238))}),
    "Swin_S_Weights": (49606258, 224, {_V1: ("swin_s-5e29d889", _cubic(224, 246))}),
    "Swin_T_Weights": (28288354, 224, {_V1: ("swin_t-704ceda3", _cubic(224, 232))}),
    "Swin_V2_B_Weights": (87930848, 256, {_V1: ("swin_v2_b-781e5279", _cubic(256, 272))}),
    "Swin_V2_S_Weights": (49737442, 256, {_V1: ("swin_v2_s-637d8ceb", _cubic(256, 260))}),
    "Swin_V2_T_Weights": (28351570, 256, {_V1: ("swin_v2_t-b137f0e2", _cubic(256, 260))}),
    "ViT_B_16_Weights": (86567656, 224, {_V1: ("vit_b_16-c867db91", {}),
        _E2E: ("vit_b_16_swag-9ac1b537", _cubic(384), (86859496, 384)), _LINEAR: ("vit_b_16_lc_swag-4e70ced5", _cubic(224))}),
    "ViT_B_32_Weights": (88224232, 224, {_V1: ("vit_b_32-d86f8d99", {})}),
    "ViT_H_14_Weights": (633470440, 518, {_E2E: ("vit_h_14_swag-80465313", _cubic(518)),
        _LINEAR: ("vit_h_14_lc_swag-c1eb923e", _cubic(224), (632045800, 224))}),
    "ViT_L_16_Weights": (304326632, 224, {_V1: ("vit_l_16-852ce7e3", {"resize_size": 242}),
        _E2E: ("vit_l_16_swag-4f3808c9", _cubic(512), (305174504, 512)), _LINEAR: ("vit_l_16_lc_swag-4d563306", _cubic(224))}),
    "ViT_L_32_Weights": (306535400, 224, {_V1: ("vit_l_32-c7638314", {})}),
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
    for member, (file, settings, *others) in files.items():
        count, size = others[0] if others else (parameters, least)
        meta = _Meta(min_size=(size, size), num_params=count, num_classes=1000)
        members[member] = Weights(f"{_ADDRESS}{file}.pth", functools.partial(_transform, **settings), meta)
    members["DEFAULT"] = members.get(_V2) or members.get(_V1) or next(iter(members.values()))
    make: Any = WeightsEnum
    made = make(name, members, module="tritensor.vision.models")
    made.__doc__ = f"Published weights of {name.removesuffix('_Weights')}: {', '.join(files)}."
    return made


# {enum: (file, parameters)}: networks that give one of Pascal VOC's 21 classes to each pixel
SEGMENTATION = {
    "FCN_ResNet50_Weights": ("fcn_resnet50_coco-1167a1af", 35322218), "FCN_ResNet101_Weights": ("fcn_resnet101_coco-7ecb50ca", 54314346),
    "DeepLabV3_ResNet50_Weights": ("deeplabv3_resnet50_coco-cd0a2569", 42004074),
    "DeepLabV3_ResNet101_Weights": ("deeplabv3_resnet101_coco-586e9e4e", 60996202),
    "DeepLabV3_MobileNet_V3_Large_Weights": ("deeplabv3_mobilenet_v3_large-fc3c493d", 11029328),
    "LRASPP_MobileNet_V3_Large_Weights": ("lraspp_mobilenet_v3_large-d234d4ea", 3221538),
}  # fmt: skip


def _segment() -> Any:
    from tritensor.vision.transforms._presets import SemanticSegmentation  # late: transforms load Pillow

    return SemanticSegmentation(resize_size=520)


def make_segmentation_enum(name: str) -> Any:
    """The enum of a network's weights."""
    file, parameters = SEGMENTATION[name]
    held = Weights(f"{_ADDRESS}{file}.pth", _segment, _Meta(min_size=(1, 1), num_params=parameters, num_classes=21))
    make: Any = WeightsEnum
    return make(name, {"COCO_WITH_VOC_LABELS_V1": held, "DEFAULT": held}, module="tritensor.vision.models.segmentation")


ENUMS: dict[str, Any] = {name: _make(name) for name in _FILES}
