"""Data sets with objects: Pascal VOC and Coco of tiny files, and data sets wrapped so that transforms.v2 changes their targets."""

from __future__ import annotations

import json
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import tritensor as tt
from tritensor.vision import datasets
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms import v2

OBJECT = "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox><part><name>head</name></part></object>"


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    base = tmp_path / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "Annotations", "SegmentationClass", "ImageSets/Main", "ImageSets/Segmentation"):
        (base / folder).mkdir(parents=True)
    for kind in ("Main", "Segmentation"):
        (base / "ImageSets" / kind / "train.txt").write_text("one\ntwo\n")
    pixels = np.zeros((20, 30, 3), np.uint8)
    for name, objects in (("one", [("cat", 3, 4, 10, 12), ("dog", 1, 2, 5, 6)]), ("two", [("tvmonitor", 0, 0, 9, 9)])):
        PIL.Image.fromarray(pixels).save(base / "JPEGImages" / f"{name}.jpg")
        PIL.Image.fromarray(pixels[:, :, 0] + 3).save(base / "SegmentationClass" / f"{name}.png")
        text = "".join(OBJECT.format(*o) for o in objects)
        (base / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><folder>VOC2012</folder><size><width>30</width></size>{text}</annotation>"
        )
    return tmp_path


def test_voc(voc: Path) -> None:
    data = datasets.VOCDetection(voc, transform=v2.ToImage())
    image, target = data[0]
    assert (len(data), type(image), tuple(image.shape)) == (2, tv.Image, (3, 20, 30))
    found = target["annotation"]
    assert (found["folder"], found["size"], [o["name"] for o in found["object"]]) == ("VOC2012", {"width": "30"}, ["cat", "dog"])
    assert found["object"][0]["bndbox"] == {"xmin": "3", "ymin": "4", "xmax": "10", "ymax": "12"}
    assert len(data[1][1]["annotation"]["object"]) == 1
    assert data.annotations[0].endswith(os.path.join("VOC2012", "Annotations", "one.xml"))
    masks = datasets.VOCSegmentation(voc)
    assert int(np.asarray(masks[1][1]).max()) == 3
    assert masks.masks == masks.targets


def test_wrapped_voc(voc: Path) -> None:
    flip = v2.RandomHorizontalFlip(1)
    data = datasets.wrap_dataset_for_transforms_v2(datasets.VOCDetection(voc, transforms=flip))
    assert isinstance(data, datasets.VOCDetection)
    assert (type(data).__name__, len(data), data.year) == ("WrappedVOCDetection", 2, "2012")
    for given in (data, pickle.loads(pickle.dumps(data))):
        image, target = given[0]
        assert isinstance(image, PIL.Image.Image)
        assert sorted(target) == ["boxes", "labels"]
        assert (target["boxes"].tolist(), target["boxes"].canvas_size) == ([[20, 4, 27, 12], [25, 2, 29, 6]], (20, 30))
        assert target["labels"].tolist() == [8, 12]
    every = datasets.wrap_dataset_for_transforms_v2(datasets.VOCDetection(voc), target_keys="all")
    assert sorted(every[0][1]) == ["annotation", "boxes", "labels"]
    masks = datasets.wrap_dataset_for_transforms_v2(datasets.VOCSegmentation(voc, transforms=v2.Resize((10, 15))))
    image, mask = masks[0]
    assert (image.size, type(mask), tuple(mask.shape), int(mask.max())) == ((15, 10), tv.Mask, (1, 10, 15), 3)


class Index:
    """pycocotools' COCO, of which the data set uses this much."""

    def __init__(self, path: str) -> None:
        held = json.loads(Path(path).read_text())
        self.imgs, self.anns = {i["id"]: i for i in held["images"]}, held["annotations"]

    def loadImgs(self, id: int) -> list[Any]:
        return [self.imgs[id]]

    def getAnnIds(self, id: int) -> list[int]:
        return [i for i, a in enumerate(self.anns) if a["image_id"] == id]

    def loadAnns(self, ids: list[int]) -> list[Any]:
        return [self.anns[i] for i in ids]


def test_wrapped_coco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools", types.ModuleType("pycocotools"))
    monkeypatch.setitem(sys.modules, "pycocotools.coco", types.SimpleNamespace(COCO=Index))  # type: ignore[arg-type]
    decoded = types.SimpleNamespace(
        frPyObjects=lambda s, h, w: (s, h, w), merge=lambda r: r, decode=lambda r: np.full(r[1:], r[0][0][0], np.uint8)
    )
    monkeypatch.setitem(sys.modules, "pycocotools.mask", decoded)  # type: ignore[arg-type]
    for name in ("7", "9"):
        PIL.Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / f"{name}.png")
    notes = [
        {"image_id": 7, "bbox": [1.0, 2.0, 3.0, 4.0], "category_id": 5, "segmentation": [[1]], "area": 3, "iscrowd": 0, "caption": "a"},
        {"image_id": 7, "bbox": [0.0, 0.0, 9.0, 8.0], "category_id": 6, "segmentation": [[2]], "area": 4, "iscrowd": 1, "caption": "b"},
    ]
    file = tmp_path / "notes.json"
    file.write_text(json.dumps({"images": [{"id": i, "file_name": f"{i}.png"} for i in (9, 7)], "annotations": notes}))
    data = datasets.CocoDetection(tmp_path, str(file))
    assert (data.ids, [a["area"] for a in data[0][1]]) == ([7, 9], [3, 4])
    assert datasets.CocoCaptions(tmp_path, str(file))[0][1] == ["a", "b"]
    wrapped = datasets.wrap_dataset_for_transforms_v2(data)
    target = wrapped[0][1]
    assert sorted(target) == ["boxes", "image_id", "labels"]
    assert (target["boxes"].tolist(), target["boxes"].format.name) == ([[1, 2, 4, 6], [0, 0, 9, 8]], "XYXY")
    assert (target["labels"].tolist(), target["image_id"]) == ([5, 6], 7)
    assert wrapped[1][1] == {"image_id": 9}
    chosen = datasets.wrap_dataset_for_transforms_v2(datasets.CocoDetection(tmp_path, str(file)), ["masks", "area"])[0][1]
    assert (chosen["area"], type(chosen["masks"]), chosen["masks"].amax((1, 2)).tolist()) == ([3, 4], tv.Mask, [1, 2])
    with pytest.raises(ValueError, match="must be of type integer"):
        data["x"]  # type: ignore[index]


def test_classes_of_images_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    PIL.Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(tmp_path / "cat" / "1.png")
    data = datasets.wrap_dataset_for_transforms_v2(datasets.ImageFolder(tmp_path, transform=v2.ToImage()))
    assert (type(data[0][0]), data[0][1], data.classes) == (tv.Image, 0, ["cat"])


def test_mistakes_are_named(voc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="year '1999', image_set 'train'; give 2007 to 2012"):
        datasets.VOCDetection(voc, "1999")
    with pytest.raises(FileNotFoundError, match=r"Dataset not found or corrupted; download=True gets VOCtest_06-Nov-2007\.tar"):
        datasets.VOCDetection(voc, "2007", "test")
    with pytest.raises(ValueError, match="`target_keys` can be None, 'all', or a collection"):
        datasets.wrap_dataset_for_transforms_v2(datasets.VOCDetection(voc), 3)
    with pytest.raises(ValueError, match=r"Target keys \['x'\] are not available"):
        datasets.wrap_dataset_for_transforms_v2(datasets.VOCDetection(voc), ["x"])
    with pytest.raises(TypeError, match="No wrapper exists for dataset class FakeData"):
        datasets.wrap_dataset_for_transforms_v2(datasets.FakeData(2))
    with pytest.raises(TypeError, match="meant for subclasses of"):
        datasets.wrap_dataset_for_transforms_v2([tt.ones(1)])
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(ModuleNotFoundError, match="CocoDetection: needs pycocotools"):
        datasets.CocoDetection(voc, "x.json")
    with pytest.raises(AttributeError, match="no attribute 'CelebA'; the data sets here are"):
        datasets.CelebA  # noqa: B018
