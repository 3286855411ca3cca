"""Data sets of images: read from the files that their authors publish, from folders of images, or made up."""

from typing import Any

from tritensor.vision.datasets.cifar import CIFAR10 as CIFAR10
from tritensor.vision.datasets.cifar import CIFAR100 as CIFAR100
from tritensor.vision.datasets.coco import CocoCaptions as CocoCaptions
from tritensor.vision.datasets.coco import CocoDetection as CocoDetection
from tritensor.vision.datasets.digits import Digits as Digits
from tritensor.vision.datasets.fakedata import FakeData as FakeData
from tritensor.vision.datasets.folder import DatasetFolder as DatasetFolder
from tritensor.vision.datasets.folder import ImageFolder as ImageFolder
from tritensor.vision.datasets.mnist import EMNIST as EMNIST
from tritensor.vision.datasets.mnist import KMNIST as KMNIST
from tritensor.vision.datasets.mnist import MNIST as MNIST
from tritensor.vision.datasets.mnist import FashionMNIST as FashionMNIST
from tritensor.vision.datasets.vision import StandardTransform as StandardTransform
from tritensor.vision.datasets.vision import VisionDataset as VisionDataset
from tritensor.vision.datasets.voc import VOCDetection as VOCDetection
from tritensor.vision.datasets.voc import VOCSegmentation as VOCSegmentation


def __getattr__(name: str) -> Any:
    """What loads the second version of transforms, when it is asked for. Raises AttributeError for other names."""
    if name == "wrap_dataset_for_transforms_v2":
        from tritensor.vision.datasets.wrapping import wrap_dataset_for_transforms_v2

        return wrap_dataset_for_transforms_v2
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; the data sets here are {', '.join(n for n in globals() if n[:1].isupper())}"
    )
