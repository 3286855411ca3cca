"""Data sets whose samples say what is in them, for transforms.v2: masks, boxes and labels in the place of what the files hold."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.extras import extra
from tritensor.tensor.functions.creation.constructors import as_tensor, tensor
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision import tv_tensors as tv
from tritensor.vision.datasets.cifar import CIFAR10
from tritensor.vision.datasets.coco import CocoCaptions, CocoDetection
from tritensor.vision.datasets.folder import DatasetFolder
from tritensor.vision.datasets.mnist import MNIST
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.datasets.voc import VOCDetection, VOCSegmentation
from tritensor.vision.transforms.v2 import functional as F

Wrapper = Callable[[int, Any], Any]  # (index, sample) -> sample
_CLASSES = [
    "__background__",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]  # of Pascal VOC


def wrap_dataset_for_transforms_v2(dataset: Any, target_keys: Any = None) -> Any:
    """A data set whose samples transforms.v2 takes: an instance of its class as well, with the transforms that it has.

    Classes of images stay as they are. CocoDetection's targets become a dict of "boxes", "labels" and "image_id", and "masks" where target_keys
    names them; VOCDetection's one of "boxes" and "labels"; VOCSegmentation's are Masks.

    Args:
        target_keys: which entries of such a dict are wanted, "all", or None for those above.

    Raises TypeError for a data set that is none of these, ValueError for other keys.
    """
    named = isinstance(target_keys, Collection) and all(isinstance(key, str) for key in target_keys)
    if not (target_keys is None or target_keys == "all" or (named and not isinstance(target_keys, str))):
        raise ArgumentError(
            f"`target_keys` can be None, 'all', or a collection of strings denoting the keys to be returned, but got {target_keys}"
        )
    return type(f"Wrapped{type(dataset).__name__}", (_Wrapped, type(dataset)), {})(dataset, target_keys)


class _Wrapped:
    """Stands before the data set's class, whose __init__ is not called."""

    def __init__(self, dataset: Any, target_keys: Any) -> None:
        if not isinstance(dataset, VisionDataset):
            raise TypeError(
                f"This wrapper is meant for subclasses of `torchvision.datasets.VisionDataset`, but got a '{type(dataset)}' instead"
            )
        make = next((_FACTORIES[cls] for cls in type(dataset).__mro__ if cls in _FACTORIES), None)
        if make is None:
            raise TypeError(
                f"No wrapper exists for dataset class {type(dataset).__name__}; there are those of {', '.join(c.__name__ for c in _FACTORIES)}"
            )
        self._dataset, self._target_keys, self._wrapper = dataset, target_keys, make(dataset, target_keys)
        # They come after the wrapping: the data set gives what its files hold.
        for name in ("transform", "target_transform", "transforms"):
            setattr(self, name, getattr(dataset, name))
            setattr(dataset, name, None)

    def __getattr__(self, item: str) -> Any:
        return getattr(self.__dict__["_dataset"], item)

    def __getitem__(self, index: int) -> Any:
        sample = self._wrapper(index, self._dataset[index])
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> Any:
        """Pickled as its data set with the transforms back in it: the class is made anew."""
        dataset = copy.copy(self._dataset)
        dataset.transform, dataset.target_transform, dataset.transforms = self.transform, self.target_transform, self.transforms
        return wrap_dataset_for_transforms_v2, (dataset, self._target_keys)


def _as_keys(target_keys: Any, available: set[str], default: set[str]) -> set[str]:
    wanted = default if target_keys is None else available if target_keys == "all" else set(target_keys)
    if wanted - available:
        raise ArgumentError(f"Target keys {sorted(wanted - available)} are not available; there are {', '.join(sorted(available))}")
    return wanted


def _as_it_is(dataset: Any, target_keys: Any) -> Wrapper:
    return lambda index, sample: sample


def _segmentation(dataset: Any, target_keys: Any) -> Wrapper:
    return lambda index, sample: (sample[0], tv.Mask(sample[1]))


def _coco(dataset: Any, target_keys: Any) -> Wrapper:
    native = {"segmentation", "area", "iscrowd", "image_id", "bbox", "category_id"}
    wanted = _as_keys(target_keys, native | {"boxes", "masks", "labels"}, {"image_id", "boxes", "labels"})

    def wrap(index: int, sample: Any) -> Any:
        image, objects = sample
        if not objects:
            return image, {"image_id": dataset.ids[index]}
        canvas = tuple(F.get_size(image))
        target: dict[str, Any] = {key: [each[key] for each in objects] for key in wanted & native}
        if "image_id" in wanted:
            target["image_id"] = dataset.ids[index]
        if "boxes" in wanted:
            boxes = tv.BoundingBoxes([each["bbox"] for each in objects], format="XYWH", canvas_size=canvas)
            target["boxes"] = F.convert_bounding_box_format(boxes, new_format="XYXY")
        if "masks" in wanted:
            target["masks"] = tv.Mask(stack([as_tensor(_decode(each["segmentation"], canvas)) for each in objects]))
        if "labels" in wanted:
            target["labels"] = tensor([each["category_id"] for each in objects])
        return image, target

    return wrap


def _decode(segmentation: Any, canvas: tuple[int, ...]) -> Any:
    """The pixels of polygons, or of runs, by pycocotools."""
    mask = extra("pycocotools.mask", "wrap_dataset_for_transforms_v2", "pycocotools", "pycocotools")
    if isinstance(segmentation, list):
        segmentation = mask.merge(mask.frPyObjects(segmentation, *canvas))
    elif not isinstance(segmentation["counts"], str):
        segmentation = mask.frPyObjects(segmentation, *canvas)
    return mask.decode(segmentation)


def _voc(dataset: Any, target_keys: Any) -> Wrapper:
    wanted = _as_keys(target_keys, {"annotation", "boxes", "labels"}, {"boxes", "labels"})

    def wrap(index: int, sample: Any) -> Any:
        image, given = sample
        objects = given["annotation"]["object"]
        target: dict[str, Any] = given if "annotation" in wanted else {}
        if "boxes" in wanted:
            ends = [[int(each["bndbox"][part]) for part in ("xmin", "ymin", "xmax", "ymax")] for each in objects]
            target["boxes"] = tv.BoundingBoxes(ends, format="XYXY", canvas_size=(image.height, image.width))
        if "labels" in wanted:
            target["labels"] = tensor([_CLASSES.index(each["name"]) for each in objects])
        return image, target

    return wrap


_FACTORIES: dict[type, Callable[[Any, Any], Wrapper]] = {
    CIFAR10: _as_it_is, MNIST: _as_it_is, DatasetFolder: _as_it_is, CocoCaptions: _as_it_is, CocoDetection: _coco, VOCDetection: _voc,
    VOCSegmentation: _segmentation,
}  # fmt: skip
