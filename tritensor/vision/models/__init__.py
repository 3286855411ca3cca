"""Networks under torchvision's path, with its signatures and the enums of their published weights. No weights come with tritensor: they are downloaded."""

from __future__ import annotations

from tritensor.models import VGG as VGG
from tritensor.models import AlexNet as AlexNet
from tritensor.models import ResNet as ResNet
from tritensor.vision.models.densenet import DenseNet as DenseNet
from tritensor.vision.models.networks.convnext import ConvNeXt as ConvNeXt
from tritensor.vision.models.networks.efficientnet import EfficientNet as EfficientNet
from tritensor.vision.models.networks.mnasnet import MNASNet as MNASNet
from tritensor.vision.models.networks.mobilenetv2 import MobileNetV2 as MobileNetV2
from tritensor.vision.models.networks.mobilenetv3 import MobileNetV3 as MobileNetV3
from tritensor.vision.models.networks.regnet import RegNet as RegNet
from tritensor.vision.models.networks.shufflenet import ShuffleNetV2 as ShuffleNetV2
from tritensor.vision.models.networks.swin import SwinTransformer as SwinTransformer
from tritensor.vision.models.networks.vision_transformer import VisionTransformer as VisionTransformer
from tritensor.vision.models.registry import BUILTIN_MODELS
from tritensor.vision.models.registry import get_model as get_model
from tritensor.vision.models.registry import get_model_builder as get_model_builder
from tritensor.vision.models.registry import get_model_weights as get_model_weights
from tritensor.vision.models.registry import get_weight as get_weight
from tritensor.vision.models.registry import list_models as list_models
from tritensor.vision.models.squeezenet import SqueezeNet as SqueezeNet
from tritensor.vision.models.weights import ENUMS
from tritensor.vision.models.weights import Weights as Weights
from tritensor.vision.models.weights import WeightsEnum as WeightsEnum

_CLASSIFIERS = dict(BUILTIN_MODELS)  # segmentation's networks come in when it is imported
globals().update(_CLASSIFIERS)
ENUM_NAMES = tuple(ENUMS)
globals().update(ENUMS)

__all__ = [
    "VGG", "AlexNet", "ConvNeXt", "DenseNet", "EfficientNet", "MNASNet", "MobileNetV2", "MobileNetV3", "RegNet", "ResNet", "ShuffleNetV2", "SqueezeNet",
    "SwinTransformer", "VisionTransformer", "Weights", "WeightsEnum", "get_model", "get_model_builder", "get_model_weights", "get_weight",
    "list_models", *_CLASSIFIERS, *ENUM_NAMES,
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Modules of this folder, imported when they are asked for; of a network that is not here, its name is told."""
    if name in ("densenet", "feature_extraction", "resnet", "squeezenet", "segmentation", "vgg", "_api", "_utils"):
        import importlib

        return importlib.import_module(f"tritensor.vision.models.{name}")
    raise AttributeError(
        f"module 'torchvision.models' has no attribute {name!r} in tritensor; the networks here are {', '.join(list_models())}"
    )
