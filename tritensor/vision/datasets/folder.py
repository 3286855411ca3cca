"""Data sets of the files in folders, one folder to a class."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError, MissingFileError
from tritensor.vision.datasets.vision import VisionDataset
from tritensor.vision.pillow import pillow

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether a name ends in one of the extensions, in either case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename: str) -> bool:
    """Whether a name ends like an image's."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
    """The folders of a folder, sorted, and the number of each. Raises FileNotFoundError where there is none."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise MissingFileError(
            f"find_classes: {os.fspath(directory)} has no folder in it; each class's files stand in a folder of its name"
        )
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(
    directory: str | os.PathLike[str], class_to_idx: dict[str, int] | None = None, extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None, allow_empty: bool = False,
) -> list[tuple[str, int]]:  # fmt: skip
    """(path, class) of every file below the folder of its class, in sorted order; links to folders are followed.

    Raises ValueError where not exactly one of `extensions` and `is_valid_file` is given, FileNotFoundError for classes without a file.
    """
    if (extensions is None) == (is_valid_file is None):  # both could contradict each other
        raise ArgumentError("make_dataset: extensions and is_valid_file: give one of them, which says what files are taken")
    wanted = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions))  # type: ignore[arg-type]
    directory = os.path.expanduser(directory)
    numbers = find_classes(directory)[1] if class_to_idx is None else class_to_idx
    if not numbers:
        raise ArgumentError("make_dataset: class_to_idx is empty; give the number of at least one class")
    samples: list[tuple[str, int]] = []
    bare = set(numbers)
    for name in sorted(numbers):
        # sorted: the same order on every file system
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            found = [(path, numbers[name]) for file in sorted(files) if wanted(path := os.path.join(folder, file))]
            samples += found
            if found:
                bare.discard(name)
    if bare and not allow_empty:
        endings = extensions if isinstance(extensions, str | None) else ", ".join(extensions)
        kinds = f" that ends in {endings}" if extensions else " that is_valid_file takes"
        raise MissingFileError(
            f"make_dataset: {os.fspath(directory)}: no file{kinds} for {', '.join(sorted(bare))}; allow_empty=True lets it pass"
        )
    return samples


def pil_loader(path: str | os.PathLike[str]) -> Any:
    """The image of a file, as RGB. Raises OSError, which names the file, for one that is none."""
    image = pillow(asked="pil_loader")
    try:
        with open(path, "rb") as file:
            return image.open(file).convert("RGB")
    except image.UnidentifiedImageError:
        raise OSError(f"pil_loader: {os.fspath(path)} is no image that Pillow knows") from None
    except OSError as error:
        if error.errno is None:  # of Pillow: a file that is cut off
            raise OSError(f"pil_loader: {os.fspath(path)}: {error}") from None
        raise


def default_loader(path: str | os.PathLike[str]) -> Any:
    """The loader where none is given: pil_loader."""
    return pil_loader(path)


class DatasetFolder(VisionDataset):
    """Files in folders, root/class/...; samples are (what `loader` makes of the file, the class's number).

    `samples` lists (path, class), `targets` the classes, `classes` their names, `class_to_idx` their numbers.

    Args:
        root: the folder above those of the classes.
        loader: of a path, the sample.
        extensions, is_valid_file: which files are taken, by the end of the name or by a function of the path.
        transform, target_transform: of the sample and of its class.
        allow_empty: a class may have no file.

    Raises:
        FileNotFoundError: no folder, or a class without files.
    """

    def __init__(
        self, root: str | os.PathLike[str], loader: Callable[[str], Any], extensions: tuple[str, ...] | None = None,
        transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None, allow_empty: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.loader, self.extensions = loader, extensions
        self.targets = [number for _, number in self.samples]

    @staticmethod
    def make_dataset(
        directory: str | os.PathLike[str], class_to_idx: dict[str, int], extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None, allow_empty: bool = False,
    ) -> list[tuple[str, int]]:  # fmt: skip
        """(path, class) of every file; a subclass may say otherwise."""
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
        """The classes and their numbers; a subclass may say otherwise."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transform_sample(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in folders, root/class/...; samples are (PIL image in RGB, the class's number). `imgs` is `samples`; see DatasetFolder.

    >>> import os
    >>> for kind in ("cat", "dog"):
    ...     os.makedirs(f"pets/{kind}")
    ...     tt.vision.utils.save_image(tt.rand(3, 8, 8), f"pets/{kind}/first.png")
    >>> data = tt.vision.datasets.ImageFolder("pets", transform=tt.vision.transforms.ToTensor())
    >>> data.classes, data[1][1]
    (['cat', 'dog'], 1)
    """

    def __init__(
        self, root: str | os.PathLike[str], transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None,
        loader: Callable[[str], Any] = default_loader, is_valid_file: Callable[[str], bool] | None = None, allow_empty: bool = False,
    ) -> None:  # fmt: skip
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
