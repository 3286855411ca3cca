"""Pascal VOC (Everingham et al. 2010): photographs with the boxes of their objects, or with a class for each pixel."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any, ClassVar

from tritensor.ground.errors import ArgumentError, MissingFileError
from tritensor.vision.datasets.utils import download_and_extract_archive
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.pillow import pillow

# {year: (folder of the archive's address, its name, its md5, the folder in it)}
_ARCHIVES = {
    "2012": ("voc2012", "VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd", "VOCdevkit/VOC2012"),
    "2011": ("voc2011", "VOCtrainval_25-May-2011.tar", "6c3384ef61512963050cb5d687e5bf1e", "TrainVal/VOCdevkit/VOC2011"),
    "2010": ("voc2010", "VOCtrainval_03-May-2010.tar", "da459979d0c395079b5c75ee67908abb", "VOCdevkit/VOC2010"),
    "2009": ("voc2009", "VOCtrainval_11-May-2009.tar", "a3e00b113cfcfebf17e343f59da3caa1", "VOCdevkit/VOC2009"),
    "2008": ("voc2008", "VOCtrainval_14-Jul-2008.tar", "2629fa636546599198acfcfbfcf1904a", "VOCdevkit/VOC2008"),
    "2007": ("voc2007", "VOCtrainval_06-Nov-2007.tar", "c52e279531787c972589f7e41ab4ae64", "VOCdevkit/VOC2007"),
    "2007-test": ("voc2007", "VOCtest_06-Nov-2007.tar", "b6e924de25625d8de591ea690078ad9f", "VOCdevkit/VOC2007"),
}


class _VOC(VisionDataset):
    _lists: ClassVar[str]
    _folder: ClassVar[str]
    _ending: ClassVar[str]

    def __init__(
        self, root: str | os.PathLike[str], year: str = "2012", image_set: str = "train", download: bool = False,
        transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None, transforms: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(root, transforms, transform, target_transform)
        sets = ("train", "trainval", "val", *(("test",) if year == "2007" else ()))
        if year not in _ARCHIVES or image_set not in sets:
            raise ArgumentError(
                f"{type(self).__name__}: year {year!r}, image_set {image_set!r}; give 2007 to 2012, and one of {', '.join(sets)}"
            )
        self.year, self.image_set = year, image_set
        address, self.filename, self.md5, inner = _ARCHIVES["2007-test" if image_set == "test" else year]
        self.url = f"https://thor.robots.ox.ac.uk/pascal/VOC/{address}/{self.filename}"
        if download:
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.md5)
        base = os.path.join(self.root, *inner.split("/"))
        if not os.path.isdir(base):
            raise MissingFileError(
                f"{type(self).__name__}: {base} is no folder: Dataset not found or corrupted; download=True gets {self.filename}"
            )
        with open(os.path.join(base, "ImageSets", self._lists, image_set + ".txt")) as file:
            names = [line.strip() for line in file]
        self.images = [os.path.join(base, "JPEGImages", name + ".jpg") for name in names]
        self.targets = [os.path.join(base, self._folder, name + self._ending) for name in names]

    def __len__(self) -> int:
        return len(self.images)

    def _read_target(self, path: str) -> Any:
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = pillow().open(self.images[index]).convert("RGB"), self._read_target(self.targets[index])
        return (image, target) if self.transforms is None else self.transforms(image, target)


class VOCSegmentation(_VOC):
    """Samples are (PIL image, PIL image of classes).

    Args:
        root: the folder that VOCdevkit stands in.
        year: "2007" to "2012".
        image_set: "train", "trainval" or "val"; of 2007 also "test".
        download: get and unpack the archive.

    Raises ValueError for another year or set, FileNotFoundError where it is not there.
    """

    _lists, _folder, _ending = "Segmentation", "SegmentationClass", ".png"

    @property
    def masks(self) -> list[str]:
        """The paths of the images of classes."""
        return self.targets

    def _read_target(self, path: str) -> Any:
        return pillow().open(path)


class VOCDetection(_VOC):
    """Samples are (PIL image, the annotation as a dict of its XML); arguments and errors are VOCSegmentation's."""

    _lists, _folder, _ending = "Main", "Annotations", ".xml"

    @property
    def annotations(self) -> list[str]:
        """The paths of the annotations."""
        return self.targets

    def _read_target(self, path: str) -> Any:
        return self.parse_voc_xml(ET.parse(path).getroot())

    @staticmethod
    def parse_voc_xml(node: ET.Element) -> dict[str, Any]:
        """An element as {its tag: its text, or a dict of what is in it}; several of one tag are a list, objects always are."""
        if not len(node):
            return {node.tag: (node.text or "").strip()} if node.text else {}
        inner: dict[str, list[Any]] = {}
        for child in node:
            for tag, value in VOCDetection.parse_voc_xml(child).items():
                inner.setdefault(tag, []).append(value)
        if node.tag == "annotation":
            inner["object"] = [inner.get("object", [])]
        return {node.tag: {tag: values[0] if len(values) == 1 else values for tag, values in inner.items()}}
