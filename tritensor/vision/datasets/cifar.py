"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), from the python batches or the binary ones as they are published."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tritensor.ground.errors import CheckpointError
from tritensor.io.archives import extract
from tritensor.io.checksums import Checksum, file_digest, is_intact
from tritensor.vision.datasets.batch_pickle import read_batch
from tritensor.vision.datasets.files import PublishedFile, fetch, missing_error
from tritensor.vision.datasets.vision import SplitDataset
from tritensor.vision.pillow import image_from_array

_PIXELS = 3 * 32 * 32


class CIFAR10(SplitDataset):
    """Photographs of ten kinds of things: 50,000 for training and 10,000 for tests, 32 x 32 colour pixels; samples are (PIL image, int).

    Looked for in `root`: the folder of python batches, that of binary ones, then an archive of either, which is unpacked. Pickles are read
    without running what they say. `data` is an array (n, 32, 32, 3) of uint8, `targets` a list of ints, `classes` the names of the classes.

    Args:
        root: the folder above `cifar-10-batches-py`.
        train: the training set, or that for tests.
        transform, target_transform: of the image and of its label.
        download: get the archive where nothing is there, checked by the authors' md5.

    Raises:
        MissingFileError: files that are not there, and download is False.
        DownloadError: no mirror gave the archive.
        CheckpointError: a file is damaged; it is named.
    """

    mirrors: tuple[str, ...] = ("https://www.cs.toronto.edu/~kriz/",)
    base_folder = "cifar-10-batches-py"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list: tuple[tuple[str, str], ...] = (
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    )
    test_list: tuple[tuple[str, str], ...] = (("test_batch", "40351d587109b95175f43aff81a1287e"),)
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}  # noqa: RUF012
    labels_key = "labels"
    binary_folder, binary_names, binary_meta = "cifar-10-batches-bin", "{}.bin", "batches.meta.txt"
    binary_archive, binary_md5 = "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"
    label_bytes = 1  # before each image of a binary file; the last of them is the label

    def _load(self) -> None:
        self._unpack()
        self.data, self.targets, self.classes = self._read_batches()
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def _root_path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def _split_files(self) -> list[tuple[str, str]]:
        return list(self.train_list if self.train else self.test_list)

    def _is_unpacked(self) -> bool:
        return os.path.isdir(self._root_path(self.base_folder)) or os.path.isdir(self._root_path(self.binary_folder))

    def _unpack(self) -> None:
        """Unpack an archive that lies in the root, where no folder of batches does."""
        for name, md5 in ((self.filename, self.tgz_md5), (self.binary_archive, self.binary_md5)):
            path = self._root_path(name)
            if self._is_unpacked() or not os.path.isfile(path):  # a folder that is there wins: it may have been changed on purpose
                continue
            if not is_intact(path, Checksum("md5", md5)):
                raise CheckpointError(
                    f"{type(self).__name__}: {path} is not the archive that was published (md5 {md5}); remove it and download it again"
                )
            extract(path, self.root)

    def download(self) -> None:
        """Get the archive and unpack it, where nothing is there. Raises DownloadError."""
        if not self._check_integrity():
            path = fetch(PublishedFile(self.filename, self.tgz_md5, self.mirrors), self.root, type(self).__name__)
            extract(path, self.root)

    def _check_integrity(self) -> bool:
        """Whether all files of one form are there, with the published checksums."""
        if os.path.isdir(self._root_path(self.base_folder)):
            listed = [*self.train_list, *self.test_list, (self.meta["filename"], self.meta["md5"])]
            return all(is_intact(self._root_path(self.base_folder, name), Checksum("md5", md5)) for name, md5 in listed)
        return os.path.isdir(self._root_path(self.binary_folder))  # no checksums of the single binary files were published

    def _read_batches(self) -> tuple[np.ndarray, list[int], list[str]]:
        if os.path.isdir(self._root_path(self.base_folder)):
            return self._read_python()
        if os.path.isdir(self._root_path(self.binary_folder)):
            return self._read_binary()
        raise missing_error(type(self).__name__, [self.base_folder, self.binary_folder, self.filename], [str(self.root)])

    def _find_file(self, folder: str, name: str) -> str:
        path = self._root_path(folder, name)
        if not os.path.isfile(path):
            raise missing_error(type(self).__name__, [name], [self._root_path(folder)])
        return path

    def _check_file(self, name: str, md5: str) -> str:
        path = self._find_file(self.base_folder, name)
        found = file_digest(path, "md5")
        if found != md5:
            raise CheckpointError(
                f"{type(self).__name__}: {path} has md5 {found}, and {md5} was published; remove it, and give download=True"
            )
        return path

    def _read_python(self) -> tuple[np.ndarray, list[int], list[str]]:
        names = read_batch(self._check_file(self.meta["filename"], self.meta["md5"]))[self.meta["key"]]
        pixels: list[Any] = []
        targets: list[int] = []
        for name, md5 in self._split_files():
            path = self._check_file(name, md5)
            batch = read_batch(path)
            values, labels = batch.get("data"), batch.get(self.labels_key, [])
            if not _are_samples(values, labels, len(names)):
                raise CheckpointError(
                    f"{path}: holds {sorted(batch)}, which are no images with a label each; remove it and download it again"
                )
            pixels.append(values)
            targets += labels
        return _to_images(np.concatenate(pixels)), targets, list(names)

    def _read_binary(self) -> tuple[np.ndarray, list[int], list[str]]:
        # a damaged name is no reason to refuse the images
        with open(self._find_file(self.binary_folder, self.binary_meta), encoding="ascii", errors="replace") as file:
            names = file.read().split()
        pixels: list[Any] = []
        targets: list[int] = []
        for name, _ in self._split_files():
            path = self._find_file(self.binary_folder, self.binary_names.format(name))
            raw = np.fromfile(path, np.uint8)
            row = self.label_bytes + _PIXELS
            labels = raw[self.label_bytes - 1 :: row][: raw.size // row].astype(int).tolist()  # of whole rows alone
            if raw.size % row or not raw.size or max(labels) >= len(names):
                raise CheckpointError(
                    f"{path}: its {raw.size:,} bytes are no rows of {row} with a label below {len(names)}; download it again"
                )
            pixels.append(raw.reshape(-1, row)[:, self.label_bytes :])
            targets += labels
        return _to_images(np.concatenate(pixels)), targets, names

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transform_sample(image_from_array(np.ascontiguousarray(self.data[index]), "RGB"), self.targets[index])


class CIFAR100(CIFAR10):
    """Photographs of a hundred kinds of things, the fine labels; see CIFAR10."""

    base_folder = "cifar-100-python"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = (("train", "16019d7e3df5f24257cddd939b257f8d"),)
    test_list = (("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),)
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}  # noqa: RUF012
    labels_key = "fine_labels"
    binary_folder, binary_names, binary_meta = "cifar-100-binary", "{}.bin", "fine_label_names.txt"
    binary_archive, binary_md5 = "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"
    label_bytes = 2  # the coarse label, then the fine one


def _are_samples(values: Any, labels: Any, classes: int) -> bool:
    return (
        isinstance(values, np.ndarray)
        and values.ndim == 2
        and values.shape[1] == _PIXELS
        and isinstance(labels, list)
        and len(labels) == len(values)
        and all(type(label) is int and 0 <= label < classes for label in labels)
    )


def _to_images(rows: np.ndarray) -> np.ndarray:
    """(n, 3072), channel by channel, as (n, 32, 32, 3)."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
