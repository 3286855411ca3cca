"""Writing a file so that a reader sees the old one or the new one whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends without an error.

    It is written beside `path` under another name, flushed to the disk, then renamed; after an error nothing is left.
    """
    target = os.path.realpath(path)  # a link stays a link: what it points to is replaced
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    handle = os.open(folder, os.O_RDONLY)  # the rename itself is on the disk once the folder is
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
