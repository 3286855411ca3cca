"""MS Coco (Lin et al. 2014): photographs with their objects, or with captions, of a file of annotations that pycocotools reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.extras import extra
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.pillow import pillow


class CocoDetection(VisionDataset):
    """Samples are (PIL image, a list of its annotations as dicts).

    Args:
        root: the folder of the images.
        annFile: the file of annotations, JSON.

    Raises ModuleNotFoundError where pycocotools is not installed, ValueError for an index that is no int.
    """

    def __init__(
        self, root: str | os.PathLike[str], annFile: str, transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None, transforms: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(root, transforms, transform, target_transform)
        self.coco = extra("pycocotools.coco", type(self).__name__, "pycocotools", "pycocotools").COCO(annFile)
        self.ids = sorted(self.coco.imgs)

    def _load_image(self, id: int) -> Any:
        return pillow().open(os.path.join(self.root, self.coco.loadImgs(id)[0]["file_name"])).convert("RGB")

    def _load_target(self, id: int) -> list[Any]:
        return self.coco.loadAnns(self.coco.getAnnIds(id))  # type: ignore[no-any-return]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not isinstance(index, int):
            raise ArgumentError(f"{type(self).__name__}: Index must be of type integer, got {type(index)} instead")
        image, target = self._load_image(self.ids[index]), self._load_target(self.ids[index])
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """Samples are (PIL image, a list of its captions); arguments and errors are CocoDetection's."""

    def _load_target(self, id: int) -> list[str]:
        return [annotation["caption"] for annotation in super()._load_target(id)]
