"""Files of data sets: found in folders, or downloaded and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tritensor.ground.errors import MissingFileError
from tritensor.io.checksums import Checksum


class PublishedFile(NamedTuple):
    """A file as its authors published it: its name, its md5, and the addresses of folders that it is in."""

    name: str
    md5: str
    mirrors: tuple[str, ...]


def list_mirrors(own: Iterable[str]) -> tuple[str, ...]:
    """Addresses of folders: the one in the environment's TRITENSOR_DATASET_MIRROR first, then a data set's own."""
    asked = os.environ.get("TRITENSOR_DATASET_MIRROR", "")  # machines without the internet have a mirror of their own
    return (*((asked.rstrip("/") + "/",) if asked else ()), *own)


def fetch(file: PublishedFile, folder: str, what: str, progress: bool = True) -> str:
    """The path of a published file in `folder`, downloaded and checked where it is not there. Raises DownloadError."""
    from tritensor.hub.download import download  # what speaks to networks takes a while to load, and most runs find their files

    path = os.path.join(folder, file.name)
    urls = [mirror + file.name for mirror in list_mirrors(file.mirrors)]
    download(urls, path, wanted=Checksum("md5", file.md5), progress=progress, what=what)
    return path


def find_first(folders: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of the names that is a file in the first of the folders that has one."""
    names = list(names)
    return next((p for f in folders for n in names if os.path.isfile(p := os.path.join(f, n))), None)


def missing_error(what: str, names: Sequence[str], folders: Sequence[str]) -> MissingFileError:
    """The error for files that are not there."""
    return MissingFileError(
        f"{what}: {' or '.join(names)} is in none of {', '.join(folders)}; give download=True, or put the file in the first of these folders"
    )
