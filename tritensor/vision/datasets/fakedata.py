"""Data set of noise, for trying out a training script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import OutOfRangeError
from tritensor.random import Generator
from tritensor.tensor.functions.creation.random import randint, randn
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.transforms.functional import to_pil_image


class FakeData(VisionDataset):
    """Images of normal noise with random labels; samples are (PIL image, int), each the same whenever it is asked for.

    Args:
        size: how many samples.
        image_size: (channels, height, width).
        num_classes: how many labels.
        transform, target_transform: of the image and of its label.
        random_offset: added to a sample's index to make its seed.

    Raises:
        IndexError: beyond the last sample.

    >>> image, label = tt.vision.datasets.FakeData(size=3, image_size=(3, 8, 8), num_classes=4)[0]
    >>> image.size, image.mode, 0 <= label < 4
    ((8, 8), 'RGB', True)
    """

    def __init__(
        self, size: int = 1000, image_size: tuple[int, int, int] = (3, 224, 224), num_classes: int = 10,
        transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None, random_offset: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.num_classes, self.image_size, self.random_offset = size, num_classes, image_size, random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):  # a loop over the data set ends by IndexError
            raise OutOfRangeError(f"FakeData: index {index} is out of range for {len(self)} samples")
        generator = Generator().manual_seed(index + self.random_offset)  # a sample does not depend on those that were read before
        image = randn(*self.image_size, generator=generator)
        target = int(randint(0, self.num_classes, (1,), generator=generator).item())
        return self._transform_sample(to_pil_image(image), target)

    def __len__(self) -> int:
        return self.size
