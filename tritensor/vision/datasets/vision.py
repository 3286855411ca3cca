"""Base of data sets of images: a folder, a transform of the image, one of the target, or one of both."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable
from typing import Any

from tritensor.data.dataset import Dataset
from tritensor.ground.errors import ArgumentError


class StandardTransform:
    """A transform of the image and one of the target, as one of both."""

    def __init__(self, transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        for title, held in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if held is not None:
                first, *others = repr(held).splitlines()
                lines += [title + first, *(" " * len(title) + line for line in others)]
        return "\n".join(lines)


class VisionDataset(Dataset[Any]):
    """Base of data sets of images: a subclass gives `__getitem__(index)` and `__len__()`.

    Args:
        root: the folder, where there is one; `~` is the home folder.
        transforms: of (image, target).
        transform, target_transform: of the one and of the other; not together with `transforms`.

    Raises:
        ValueError: both forms are given.
    """

    _repr_indent = 4

    def __init__(
        self, root: str | os.PathLike[str] | None = None, transforms: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.root: Any = os.path.expanduser(root) if isinstance(root, str) else root
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ArgumentError(f"{type(self).__name__}: transforms and transform/target_transform are given; give one form or the other")
        self.transform, self.target_transform = transform, target_transform
        if transforms is None and (transform is not None or target_transform is not None):  # one form for the repr
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index); a data set returns one sample by its index")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__(); a data set says how many samples it has")

    def _transform_sample(self, image: Any, target: Any) -> tuple[Any, Any]:
        """A sample after transform and target_transform, as they are now: programs set them later, too."""
        return StandardTransform(self.transform, self.target_transform)(image, target)

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += [line for line in self.extra_repr().splitlines() if line]
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *(" " * self._repr_indent + line for line in body)])

    def extra_repr(self) -> str:
        """Lines of the repr that a subclass adds."""
        return ""


class SplitDataset(VisionDataset, abc.ABC):
    """Base of data sets of two halves that can be downloaded: a subclass gives `download()`, and `_load()` which sets `data` and `targets`."""

    data: Any
    targets: Any

    def __init__(
        self, root: str | os.PathLike[str], train: bool = True, transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None, download: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        self._load()

    @abc.abstractmethod
    def download(self) -> None:
        """Get the files that are not there. Raises DownloadError."""

    @abc.abstractmethod
    def _load(self) -> None:
        """Set data and targets."""

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"
