"""Well-known networks, made of public layers only; parameter names and counts are those of the published weights."""

from typing import Any

from tritensor.models.alexnet import AlexNet as AlexNet
from tritensor.models.alexnet import alexnet as alexnet
from tritensor.models.gpt2 import GPT2 as GPT2
from tritensor.models.gpt2 import GPT2Config as GPT2Config
from tritensor.models.gpt2 import gpt2 as gpt2
from tritensor.models.lenet import LeNet as LeNet
from tritensor.models.lenet import lenet as lenet
from tritensor.models.resnet import ResNet as ResNet
from tritensor.models.resnet import resnet18 as resnet18
from tritensor.models.resnet import resnet34 as resnet34
from tritensor.models.resnet import resnet50 as resnet50
from tritensor.models.resnet import resnet101 as resnet101
from tritensor.models.resnet import resnet152 as resnet152
from tritensor.models.unet import UNet as UNet
from tritensor.models.unet import unet as unet
from tritensor.models.vgg import VGG as VGG
from tritensor.models.vgg import vgg11 as vgg11
from tritensor.models.vgg import vgg11_bn as vgg11_bn
from tritensor.models.vgg import vgg13 as vgg13
from tritensor.models.vgg import vgg13_bn as vgg13_bn
from tritensor.models.vgg import vgg16 as vgg16
from tritensor.models.vgg import vgg16_bn as vgg16_bn
from tritensor.models.vgg import vgg19 as vgg19
from tritensor.models.vgg import vgg19_bn as vgg19_bn


def __getattr__(name: str) -> Any:
    """A model of an installed package, by an entry point of the group "tritensor.models"; see models/installed.py."""
    if not name.startswith("_"):
        from tritensor.models.installed import find_installed

        made = find_installed(name)
        if made is not None:
            return made
    raise AttributeError(f"module 'tritensor.models' has no attribute {name!r}, and no installed package has a model of that name")
