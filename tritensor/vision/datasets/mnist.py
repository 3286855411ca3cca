"""MNIST and data sets in its format: FashionMNIST, KMNIST, EMNIST. Files as their authors publish them, gzipped or not."""

from __future__ import annotations

import os
import string
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.io.archives import extract
from tritensor.tensor.core import Tensor
from tritensor.vision.datasets.files import PublishedFile, fetch, find_first, missing_error
from tritensor.vision.datasets.idx import read_idx
from tritensor.vision.datasets.vision import SplitDataset
from tritensor.vision.pillow import image_from_array


class MNIST(SplitDataset):
    """Handwritten digits (LeCun, Cortes, Burges): 60,000 for training and 10,000 for tests, 28 x 28 grey pixels; samples are (PIL image, int).

    Files are looked for in `root/MNIST/raw`, `root/MNIST` and `root`, gzipped or not, before anything is downloaded. `data` is a tensor
    (n, 28, 28) of uint8, `targets` one (n,) of int64.

    Args:
        root: the folder above.
        train: the training set, or that for tests.
        transform, target_transform: of the image and of its label.
        download: get what is missing, checked by the authors' md5.

    Raises:
        MissingFileError: files that are not there, and download is False.
        DownloadError: no mirror gave one of them.
        CheckpointError: one of them is damaged, or they do not belong together; it is named.
    """

    mirrors: tuple[str, ...] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    )
    resources: tuple[tuple[str, str], ...] = (
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    )
    classes: list[str] = [  # noqa: RUF012  (torchvision's is a list)
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine",
    ]  # fmt: skip
    training_file, test_file = "training.pt", "test.pt"

    @property
    def raw_folder(self) -> str:
        """Folder of the downloaded files: root/MNIST/raw."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    def _folders(self) -> list[str]:
        return [self.raw_folder, os.path.dirname(self.raw_folder), str(self.root)]

    def _stem(self, kind: str) -> str:
        """The name of a file of this half, images or labels, without .gz."""
        return f"{'train' if self.train else 't10k'}-{kind}-idx{3 if kind == 'images' else 1}-ubyte"

    def _find(self, stem: str) -> str | None:
        """The path of a file, under the names that it goes around by."""
        return find_first(self._folders(), [stem, stem + ".gz", dotted := stem.replace("-idx", ".idx"), dotted + ".gz"])

    def _check_exists(self) -> bool:
        return all(self._find(name.removesuffix(".gz")) for name, _ in self.resources)

    def _load(self) -> None:
        found = []
        for kind in ("images", "labels"):
            path = self._find(self._stem(kind))
            if path is None:
                raise missing_error(type(self).__name__, [self._stem(kind) + ".gz", self._stem(kind)], self._folders())
            found.append((path, read_idx(path)))
        (images_at, images), (labels_at, labels) = found
        # files of two halves, or of two data sets, in one folder
        if images.dtype != np.uint8 or images.ndim != 3 or labels.shape != images.shape[:1]:
            raise CheckpointError(
                f"{type(self).__name__}: {images_at} holds {images.dtype.name} {images.shape} and {labels_at} {labels.dtype.name} {labels.shape}; "
                "these are no images with a label each: remove both and download them again"
            )
        self.data, self.targets = Tensor.wrap(images), Tensor.wrap(labels.astype(np.int64))

    def download(self) -> None:
        """Get the files that are nowhere to be found. Raises DownloadError."""
        for name, md5 in self.resources:
            if self._find(name.removesuffix(".gz")) is None:  # unzipped files count as well
                fetch(PublishedFile(name, md5, self.mirrors), self.raw_folder, type(self).__name__)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        # data may have been sliced by the user: Pillow needs rows one after another
        image = image_from_array(np.ascontiguousarray(self.data[index].numpy()), "L")
        return self._transform_sample(image, int(self.targets[index]))


class FashionMNIST(MNIST):
    """Ten kinds of clothes in the format of MNIST (Xiao, Rasul, Vollgraf 2017); see MNIST."""

    mirrors = (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    )
    resources = (
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]  # noqa: RUF012


class KMNIST(MNIST):
    """Ten characters of old Japanese script in the format of MNIST (Clanuwat et al. 2018); see MNIST."""

    mirrors = ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",)
    resources = (
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    )
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]  # noqa: RUF012


class EMNIST(MNIST):
    """Handwritten letters and digits in the format of MNIST (Cohen et al. 2017), in six splits; images lie transposed, as they are published.

    Args:
        split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
        others: see MNIST.

    Raises ValueError for another split, and what MNIST raises.
    """

    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    archive = PublishedFile("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", ("https://biometrics.nist.gov/cs_links/EMNIST/",))
    _all = sorted(string.digits + string.ascii_letters)
    _merged = sorted(set(string.digits + string.ascii_letters) - set("cijklmopsuvwxyz"))
    classes_split_dict = {  # noqa: RUF012
        "byclass": _all, "bymerge": _merged, "balanced": _merged, "letters": ["N/A", *string.ascii_lowercase], "digits": list(string.digits),
        "mnist": list(string.digits),
    }  # fmt: skip

    def __init__(self, root: str | os.PathLike[str], split: str, **kwargs: Any) -> None:
        if split not in self.splits:
            raise ArgumentError(f"EMNIST: split {split!r}; give one of {', '.join(map(repr, self.splits))}")
        self.split = split
        self.classes = self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def _stem(self, kind: str) -> str:
        return f"emnist-{self.split}-{'train' if self.train else 'test'}-{kind}-idx{3 if kind == 'images' else 1}-ubyte"

    def _folders(self) -> list[str]:
        return [*super()._folders(), os.path.join(self.raw_folder, "gzip"), os.path.join(str(self.root), "gzip")]

    def _check_exists(self) -> bool:
        # one archive holds all six splits: only this one is unpacked
        return all(self._find(self._stem(kind)) for kind in ("images", "labels"))

    def download(self) -> None:
        """Get the archive, and unpack this split's files, where they are not there. Raises DownloadError."""
        if not self._check_exists():
            path = fetch(self.archive, self.raw_folder, "EMNIST")
            extract(path, self.raw_folder, only=lambda name: f"emnist-{self.split}-" in name)
