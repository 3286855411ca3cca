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
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

from tritensor.ground.errors import ArgumentError, CheckpointError

Path = str | os.PathLike[str]
_LONGEST_NAME = 1 << 20  # bytes of a name, or of attributes, that stand before a member of a tar
_NAMING = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class _Header(tarfile.TarInfo):
    """A member's header as tarfile reads it, except that names and attributes that stand in the place of contents are of a length that names have."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type in _NAMING and self.size > _LONGEST_NAME:
            raise tarfile.ReadError(f"a member's name or attributes have {self.size:,} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


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
    if not path.endswith((".zip", *_TARS)):
        raise ArgumentError(f"extract: {path} ends like no archive; give a .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz")
    with contextlib.ExitStack() as held:
        file = held.enter_context(open(path, "rb"))
        with _damage(path):
            if path.endswith(".zip"):
                members = _of_zip(held.enter_context(zipfile.ZipFile(file)), path)
            else:
                members = _of_tar(held.enter_context(tarfile.open(fileobj=file, tarinfo=_Header)), path)
        return _write_all(members, path, folder, only)


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Reading inside the block: whatever it raises is told as damage of the archive."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:  # damaged bytes make zipfile, tarfile and the decompressors fail in any way
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise CheckpointError(f"extract: {path}: the archive is damaged ({told}); remove it and download it again") from None


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
    _check_apart(members, places, path, folder)
    _room(folder, sum(m.size or 0 for m in members))
    written = []
    for member, place in zip(members, places, strict=True):
        if member.size is None:
            os.makedirs(place, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _write(member, place, path)
        written.append(place)
    return written


def _check_apart(members: list[_Member], places: list[str], path: str, folder: str) -> None:
    """Raise CheckpointError where a file would be the folder itself, or a folder that another member lies in."""
    files = {place: m.name for m, place in zip(members, places, strict=True) if m.size is not None}
    folders = {folder: folder}
    for m, place in zip(members, places, strict=True):
        above = os.path.dirname(place) if m.size is not None else place
        while above not in folders:
            folders[above] = m.name
            above = os.path.dirname(above)
    for place in files.keys() & folders.keys():
        raise _refused(path, files[place], "a file where a folder should be")


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


def _write(member: _Member, place: str, path: str) -> None:
    """Write a member's bytes beside its place, and rename what is whole."""
    beside, left = place + ".part", member.size or 0
    try:
        with open(beside, "wb") as file:
            for chunk in _chunks(member, path):
                left -= len(chunk)
                if left < 0:
                    break
                file.write(chunk)
        if left:
            told = f"{os.path.basename(place)} should have {member.size:,} bytes; the archive is damaged: download it again"
            raise CheckpointError(f"extract: {path}: {told}")
        os.replace(beside, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _chunks(member: _Member, path: str) -> Iterator[bytes]:
    with _damage(path):
        source = member.open()
        assert source is not None  # it is a regular file
    with source:
        while True:
            with _damage(path):
                chunk = source.read(1 << 20)
            if not chunk:
                return
            yield chunk


def unpacked(path: Path, most: int) -> bytes:
    """The contents of a file, of a .gz what it holds, up to `most` bytes. Raises CheckpointError for a damaged or a longer one."""
    path = os.fspath(path)
    with open(path, "rb") as raw:
        source: Iterable[bytes] | IO[bytes] = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        try:
            content = source.read(most + 1)  # type: ignore[union-attr]
        except (zlib.error, EOFError, OSError) as error:
            raise CheckpointError(f"{path}: the file is damaged ({error}); remove it and download it again") from None
    if len(content) > most:
        raise CheckpointError(
            f"{path}: holds more than {most:,} bytes; this is not the file that was meant: remove it and download it again"
        )
    return content  # type: ignore[no-any-return]
