"""Unpacking archives that may be hostile: nothing is written outside of the folder, no links, no devices, no more than the disk has room for."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from typing import IO, NamedTuple

from tritensor.errors import ArgumentError, CheckpointError

Path = str | os.PathLike[str]
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, NotImplementedError)


class _Member(NamedTuple):
    """A file of an archive: its name there, its size, and what opens it. A folder has no size."""

    name: str
    size: int | None
    open: Callable[[], IO[bytes] | None]


def extract(path: Path, folder: Path, only: Callable[[str], bool] | None = None) -> list[str]:
    """Unpack a .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz into `folder`; returns the paths of the files that were written.

    The whole list of members is read and checked before the first is written; each file appears under its name when it is whole.

    Args:
        only: of a member's name, whether it is wanted.

    Raises:
        CheckpointError: a damaged archive, or one that would write elsewhere: a member with an absolute path or "..", a link, a device.
        ValueError: a name that ends like no archive.
        OSError: as open() raises; no room on the disk.
    """
    path, folder = os.fspath(path), os.path.realpath(folder)
    try:
        if path.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                return _write_all(_of_zip(archive, path), path, folder, only)
        if path.endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")):
            with tarfile.open(path) as tar:
                return _write_all(_of_tar(tar, path), path, folder, only)
    except _DAMAGE as error:
        raise CheckpointError(f"extract: {path}: the archive is damaged ({error}); remove it and download it again") from None
    except OSError as error:
        if error.errno is None:  # of a decompressor
            raise CheckpointError(f"extract: {path}: the archive is damaged ({error}); remove it and download it again") from None
        raise
    raise ArgumentError(f"extract: {path} ends like no archive; give a .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz")


def _of_zip(archive: zipfile.ZipFile, path: str) -> list[_Member]:
    found = []
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _refused(path, info.filename, "a link or a device")
        found.append(_Member(info.filename, None if info.is_dir() else info.file_size, lambda i=info: archive.open(i)))  # type: ignore[misc]
    return found


def _of_tar(tar: tarfile.TarFile, path: str) -> list[_Member]:
    found = []
    for info in tar:
        if not (info.isreg() or info.isdir()):
            raise _refused(path, info.name, "a link or a device")
        found.append(_Member(info.name, None if info.isdir() else info.size, lambda i=info: tar.extractfile(i)))  # type: ignore[misc]
    while tar.fileobj is not None and tar.fileobj.read(1 << 20):  # to the end, where a compressed file has its checksum
        continue
    return found


def _refused(path: str, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"extract: {path}: its member {name!r} is {why}; no data set has such a one, and nothing was unpacked")


def _write_all(members: list[_Member], path: str, folder: str, only: Callable[[str], bool] | None) -> list[str]:
    members = [m for m in members if only is None or only(m.name)]
    places = [_place(m.name, path, folder) for m in members]
    _room(folder, sum(m.size or 0 for m in members))
    written = []
    for member, place in zip(members, places, strict=True):
        if member.size is None:
            os.makedirs(place, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        source = member.open()
        assert source is not None  # it is a regular file
        with source:
            _write(source, place, member.size, path)
        written.append(place)
    return written


def _place(name: str, path: str, folder: str) -> str:
    """Where a member goes. Checked by the name's parts and by where folders that are there already lead."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name:
        raise _refused(path, name, "a path that leads out of the folder")
    place = os.path.join(folder, *[p for p in parts if p not in ("", ".")])
    if os.path.commonpath([os.path.realpath(place), folder]) != folder:
        raise _refused(path, name, "a path that leads out of the folder, by a link that is there")
    return place


def _room(folder: str, needed: int) -> None:
    above = folder
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    free = shutil.disk_usage(above).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"extract: {needed:,} bytes are to be written and {free:,} are free", folder)


def _write(source: IO[bytes], place: str, size: int, path: str) -> None:
    beside, left = place + ".part", size
    try:
        with open(beside, "wb") as file:
            while chunk := source.read(min(1 << 20, left + 1)):
                left -= len(chunk)
                if left < 0:
                    break
                file.write(chunk)
        if left:
            told = f"{os.path.basename(place)} should have {size:,} bytes; the archive is damaged: download it again"
            raise CheckpointError(f"extract: {path}: {told}")
        os.replace(beside, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def unpacked(path: Path, most: int) -> bytes:
    """The contents of a file, of a .gz what it holds, up to `most` bytes. Raises CheckpointError for a damaged or a longer one."""
    path = os.fspath(path)
    with open(path, "rb") as raw:
        source: Iterable[bytes] | IO[bytes] = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        try:
            content = source.read(most + 1)  # type: ignore[union-attr]
        except (*_DAMAGE, OSError) as error:
            raise CheckpointError(f"{path}: the file is damaged ({error}); remove it and download it again") from None
    if len(content) > most:
        raise CheckpointError(
            f"{path}: holds more than {most:,} bytes; this is not the file that was meant: remove it and download it again"
        )
    return content  # type: ignore[no-any-return]
