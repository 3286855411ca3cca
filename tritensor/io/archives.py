"""Extraction of zip and tar archives that may be hostile: no path out of the folder, no link, no device, no more than the disk has room for."""

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
_MAX_NAME_BYTES = 1 << 20  # bytes of a name, or of attributes, that stand before a member of a tar
_NAME_TYPES = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class _Header(tarfile.TarInfo):
    """A tar member's header, refused where it claims a name longer than names are."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        # tarfile reads a long name whole into memory: a header that claims gigabytes of it would take them
        if self.type in _NAME_TYPES and self.size > _MAX_NAME_BYTES:
            raise tarfile.ReadError(f"a member's name or attributes have {self.size:,} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


class _Member(NamedTuple):
    """A file or folder (size None) of an archive."""

    name: str
    size: int | None
    open: Callable[[], IO[bytes] | None]


def extract(path: Path, folder: Path, only: Callable[[str], bool] | None = None) -> list[str]:
    """Unpack a .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz into `folder`; returns the paths of the files that were written.

    The whole list of members is read and checked before the first is written; each file appears under its name when it is whole.

    Args:
        only: says of a member's name whether it is wanted.

    Raises:
        CheckpointError: a damaged archive, or one that would write elsewhere: a member with an absolute path or "..", a link, a device.
        ValueError: a name that ends like no archive.
        OSError: as open() raises; no room on the disk.
    """
    path, folder = os.fspath(path), os.path.realpath(folder)
    if not path.endswith((".zip", *_TARS)):
        raise ArgumentError(f"extract: {path} ends like no archive; give a .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "rb"))
        with _report_damage(path):
            if path.endswith(".zip"):
                members = _zip_members(stack.enter_context(zipfile.ZipFile(file)), path)
            else:
                members = _tar_members(stack.enter_context(tarfile.open(fileobj=file, tarinfo=_Header)), path)
        return _write_all(members, path, folder, only)


@contextlib.contextmanager
def _report_damage(path: str) -> Iterator[None]:
    """Raise CheckpointError for whatever reading inside the block raises."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:  # damaged bytes make zipfile, tarfile and the decompressors fail in any way
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise CheckpointError(f"extract: {path}: the archive is damaged ({message}); remove it and download it again") from None


def _zip_members(archive: zipfile.ZipFile, path: str) -> list[_Member]:
    members = []
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)  # 0: packed by a system without Unix modes
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _member_error(path, info.filename, "a link or a device")
        members.append(_Member(info.filename, None if info.is_dir() else info.file_size, lambda i=info: archive.open(i)))  # type: ignore[misc]
    return members


def _tar_members(tar: tarfile.TarFile, path: str) -> list[_Member]:
    members = []
    for info in tar:
        if not (info.isreg() or info.isdir()):
            raise _member_error(path, info.name, "a link or a device")
        members.append(_Member(info.name, None if info.isdir() else info.size, lambda i=info: tar.extractfile(i)))  # type: ignore[misc]
    while tar.fileobj is not None and tar.fileobj.read(1 << 20):  # to the end, where a compressed file has its checksum
        continue
    return members


def _member_error(path: str, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"extract: {path}: its member {name!r} is {why}; no data set has such a one, and nothing was unpacked")


def _write_all(members: list[_Member], path: str, folder: str, only: Callable[[str], bool] | None) -> list[str]:
    members = [m for m in members if only is None or only(m.name)]
    targets = [_target_path(m.name, path, folder) for m in members]
    _check_no_collision(members, targets, path, folder)
    _check_disk_space(folder, sum(m.size or 0 for m in members))  # by the headers; _write_member() holds each to what it said
    written = []
    for member, target in zip(members, targets, strict=True):
        if member.size is None:  # a folder
            os.makedirs(target, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write_member(member, target, path)
        written.append(target)
    return written


def _check_no_collision(members: list[_Member], targets: list[str], path: str, folder: str) -> None:
    """Raise CheckpointError where a file would be the folder itself, or a folder that another member lies in."""
    files = {target: m.name for m, target in zip(members, targets, strict=True) if m.size is not None}
    folders = {folder: folder}
    for m, target in zip(members, targets, strict=True):
        above = os.path.dirname(target) if m.size is not None else target
        while above not in folders:
            folders[above] = m.name
            above = os.path.dirname(above)
    for target in files.keys() & folders.keys():
        raise _member_error(path, files[target], "a file where a folder should be")


def _target_path(name: str, path: str, folder: str) -> str:
    """The path that a member is written to. Raises CheckpointError where it leads out of the folder."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name:
        raise _member_error(path, name, "a path that leads out of the folder")
    target = os.path.join(folder, *[p for p in parts if p not in ("", ".")])
    # a folder that was there before may itself be a link to elsewhere
    if os.path.commonpath([os.path.realpath(target), folder]) != folder:
        raise _member_error(path, name, "a path that leads out of the folder, by a link that is there")
    return target


def _check_disk_space(folder: str, needed: int) -> None:
    above = folder  # which is not there yet, or its parent neither
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    free = shutil.disk_usage(above).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"extract: {needed:,} bytes are to be written and {free:,} are free", folder)


def _write_member(member: _Member, target: str, path: str) -> None:
    """Write a member beside its target, and rename it when it is whole."""
    partial, left = target + ".part", member.size or 0
    try:
        with open(partial, "wb") as file:
            for chunk in _read_chunks(member, path):
                left -= len(chunk)
                if left < 0:  # a bomb: more comes out than the header says, and the disk was asked for that alone
                    break
                file.write(chunk)
        if left:
            message = f"{os.path.basename(target)} should have {member.size:,} bytes; the archive is damaged: download it again"
            raise CheckpointError(f"extract: {path}: {message}")
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def _read_chunks(member: _Member, path: str) -> Iterator[bytes]:
    with _report_damage(path):
        source = member.open()
        assert source is not None  # it is a regular file
    with source:
        while True:
            with _report_damage(path):
                chunk = source.read(1 << 20)
            if not chunk:
                return
            yield chunk


def read_decompressed(path: Path, max_bytes: int) -> bytes:
    """The contents of a file, of a .gz what it holds, up to `max_bytes` bytes. Raises CheckpointError for a damaged or a longer one."""
    path = os.fspath(path)
    with open(path, "rb") as raw:
        source: Iterable[bytes] | IO[bytes] = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        try:
            # one byte more shows that there are more
            content = source.read(max_bytes + 1)  # type: ignore[union-attr]
        except (zlib.error, EOFError, OSError) as error:
            raise CheckpointError(f"{path}: the file is damaged ({error}); remove it and download it again") from None
    if len(content) > max_bytes:
        raise CheckpointError(
            f"{path}: holds more than {max_bytes:,} bytes; this is not the file that was meant: remove it and download it again"
        )
    return content  # type: ignore[no-any-return]
