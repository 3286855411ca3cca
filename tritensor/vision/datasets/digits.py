"""Data set of the 1,797 handwritten digits that come with scikit-learn: it needs no download."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import CheckpointError, MissingFileError
from tritensor.io.archives import read_decompressed
from tritensor.tensor.core import Tensor
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.pillow import image_from_array

TRAINING = 1437  # four fifths; the writers of the last ones are others


class Digits(VisionDataset):
    """Handwritten digits of 8 x 8 grey pixels (Alpaydin and Kaynak 1998), as scikit-learn brings them; samples are (PIL image, int).

    Read from the installed package's own file; scikit-learn itself is not imported. `data` is a tensor (n, 8, 8) of uint8 with the
    published values, 0 to 16, `targets` one (n,) of int64. An image's pixels are those values times 255/16, rounded.

    Args:
        train: the first 1,437, or, False, the other 360; None is all of them.
        transform, target_transform: of the image and of its label.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.

    >>> data = tt.vision.datasets.Digits(train=True, transform=tt.vision.transforms.ToTensor())
    >>> image, label = data[0]
    >>> len(data), image.shape, label
    (1437, tritensor.Size([1, 8, 8]), 0)
    """

    classes = [str(i) for i in range(10)]  # noqa: RUF012  (torchvision's is a list)

    def __init__(
        self, train: bool | None = None, transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.train = train
        part = slice(None) if train is None else slice(0, TRAINING) if train else slice(TRAINING, None)
        rows = _read_rows()[part]
        self.data = Tensor.wrap(np.ascontiguousarray(rows[:, :64].reshape(-1, 8, 8).astype(np.uint8)))
        self.targets = Tensor.wrap(np.ascontiguousarray(rows[:, 64].astype(np.int64)))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = np.rint(self.data[index].numpy() * (255 / 16)).astype(np.uint8)  # published values are 0 to 16
        return self._transform_sample(image_from_array(pixels, "L"), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)


def _read_rows() -> np.ndarray:
    """The file's rows: 64 pixels and the label of each digit."""
    package = importlib.util.find_spec("sklearn")  # found, not imported: that takes a second
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError(
            "Digits: come with scikit-learn, which is not installed: pip install 'tritensor[examples]'", name="sklearn"
        )
    path = os.path.join(package.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
    if not os.path.isfile(path):
        raise MissingFileError(
            f"Digits: {path} is not there; this scikit-learn keeps its digits elsewhere: sklearn.datasets.load_digits() has them"
        )
    try:
        rows = np.array([line.split(",") for line in read_decompressed(path, 1 << 24).decode("ascii").split()], np.float64)
    except ValueError as error:
        raise CheckpointError(f"Digits: {path} is damaged ({error}); install scikit-learn again") from None
    return rows
