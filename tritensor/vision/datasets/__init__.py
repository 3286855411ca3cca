"""Data sets of images: read from the files that their authors publish, from folders of images, or made up."""

from tritensor.vision.datasets.cifar import CIFAR10 as CIFAR10
from tritensor.vision.datasets.cifar import CIFAR100 as CIFAR100
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
