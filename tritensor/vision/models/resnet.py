"""torchvision.models.resnet: the blocks that its networks are made of, and the networks."""

from tritensor.models.resnet import BasicBlock as BasicBlock
from tritensor.models.resnet import Bottleneck as Bottleneck
from tritensor.vision.models import ResNet as ResNet
from tritensor.vision.models import resnet18 as resnet18
from tritensor.vision.models import resnet34 as resnet34
from tritensor.vision.models import resnet50 as resnet50
from tritensor.vision.models import resnet101 as resnet101
from tritensor.vision.models import resnet152 as resnet152
